"""Paid answers: stored, found again, combined, and planned in batches."""
