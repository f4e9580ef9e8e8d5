"""Other engines' functions go in; the same, written with functions that have a rule, comes out."""
