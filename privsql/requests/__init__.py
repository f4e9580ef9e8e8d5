"""A Request goes in; its stages are planned, charged and run, one after the other, and an Answer comes out."""
