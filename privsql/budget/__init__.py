"""Prices go in; leave to run comes out, or a refusal. Charged before any data is read, never given back."""
