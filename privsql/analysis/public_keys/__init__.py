"""Keys that are columns of public relations, or equal to them."""
