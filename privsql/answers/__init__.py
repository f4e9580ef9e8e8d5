"""Answers that were paid for: stored, found again, combined, and asked in batches."""
