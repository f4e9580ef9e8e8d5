"""Marginals that are released together: what their residuals cost, and how noisy each should be."""
