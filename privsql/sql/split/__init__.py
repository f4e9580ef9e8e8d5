"""A parsed query goes in; its releases come out, each a query of its own, and the SQL above them."""
