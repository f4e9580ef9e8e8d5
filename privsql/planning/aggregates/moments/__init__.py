"""VAR, COVAR, CORR and REGR: what is measured, and how the answer and its interval are computed from it."""
