"""Rendered SQL goes in; exact integer tables come out."""
