"""Cheaper or safer statements for the same numbers: stored copies, bins, sums corrected for outliers."""
