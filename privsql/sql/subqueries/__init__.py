"""A SELECT with subqueries inside its expressions goes in; the same SELECT over joins comes out."""
