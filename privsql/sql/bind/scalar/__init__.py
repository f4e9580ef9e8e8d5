"""Expressions: nodes of sqlglot go in; typed expressions of the algebra come out."""
