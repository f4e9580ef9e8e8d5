"""Families of aggregates: what each measures, and how its answer is computed from noisy columns."""
