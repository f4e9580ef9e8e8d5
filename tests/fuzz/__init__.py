"""Fuzzers: what DuckDB reads against what was meant (differential.py), and values that must never come out (canaries.py)."""
