"""EXPLAIN: how a plan gets its bounds, its noise and its price, as a tree of lines."""
