"""What every engine, every accountant and every door must do: a suite each, in which a new one is a row of a list."""
