"""Contribution bounding: what limits may drop, and histograms to find limits and ranges that
nobody declared.
"""
