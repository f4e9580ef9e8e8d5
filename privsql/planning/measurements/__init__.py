"""Noise and its price in one object: a class for each way to make exact numbers noisy."""
