"""Noisy cells go in; what a person sees comes out. Everything here is post-processing: nothing exact can
reach it.
"""
