"""Machine-made mistakes: the source of four rooms goes in; how many of a random sample of its mutants the tests catch comes out.

tests/mutants.py holds mistakes that a person would make, by hand, each with the test that must catch it, and all must be
caught. Here a machine changes an operator, a constant or a condition anywhere, and what is measured is a share.
"""
