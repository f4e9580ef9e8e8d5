"""A Request goes in; its stages are planned, charged and run one by one; an Answer comes out."""
