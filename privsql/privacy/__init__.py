"""Pure mathematics of privacy: no SQL, no input or output."""
