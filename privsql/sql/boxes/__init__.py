"""The SQL above some releases goes in; SQL comes out that computes the least and the greatest value that each
number of its result can have, when every released number is only known to lie between two ends.
"""
