"""Noisy marginals go in; rows that have them come out: a synthetic table."""
