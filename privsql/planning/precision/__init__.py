"""How far noisy numbers may be off, computed before anything is spent."""
