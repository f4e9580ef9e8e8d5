"""Contribution bounding: what limits may drop, and histograms to find limits and ranges nobody knows."""
