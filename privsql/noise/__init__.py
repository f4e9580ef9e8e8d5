"""Exact integers go in, noisy integers come out: the only room where exact becomes noisy."""
