"""Fixed point: the grids that values are clamped to and laid on before they are added up or put in order."""
