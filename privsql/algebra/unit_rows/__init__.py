"""Rows of one unit: whose they are, and what windows over them compute."""
