"""The analyst's text goes in; a sqlglot tree that has nothing unknown in it comes out."""
