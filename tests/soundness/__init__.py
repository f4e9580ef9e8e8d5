"""A seeded generator of tables, neighbours and queries, and the check that no plan's bound is passed."""
