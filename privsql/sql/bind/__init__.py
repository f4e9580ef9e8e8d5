"""A permitted sqlglot tree goes in; relations over the policy's tables come out, every name and type
known.
"""
