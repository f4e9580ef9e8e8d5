"""A permitted sqlglot tree goes in; relations over the policy's tables come out, with every name and type
resolved.
"""
