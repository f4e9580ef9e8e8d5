"""Fixed point: the grids to which values are clamped and rounded before they are summed or sorted."""
