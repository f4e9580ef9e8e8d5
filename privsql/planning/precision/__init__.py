"""How far noisy numbers may be off, before anything is spent."""
