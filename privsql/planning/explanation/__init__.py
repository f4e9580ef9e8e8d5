"""EXPLAIN: how a plan comes to its bounds, its noise and its price, as a tree of lines."""
