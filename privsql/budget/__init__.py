"""Prices go in; permission to run comes out, or a refusal. A charge comes before any data is read, and is
never refunded.
"""
