"""The parts of FROM: columns that two tables share, and rows of constants."""
