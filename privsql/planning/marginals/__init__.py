"""A workload of marginals over one table goes in; the plan of its residual measurements comes out."""
