"""What a query is: relations, expressions, and the signatures of functions."""
