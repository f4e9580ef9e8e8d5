"""A query goes in; a Plan comes out: noisy measurements, the exact SQL, and the formulas of the outputs."""
