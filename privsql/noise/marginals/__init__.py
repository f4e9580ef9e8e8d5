"""Exact marginals of a table go in; noisy ones come out."""
