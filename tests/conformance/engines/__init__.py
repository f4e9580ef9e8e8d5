"""What privsql believes of an expression, asked of the real engine: type, range, totality, locality."""
