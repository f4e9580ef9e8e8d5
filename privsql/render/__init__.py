"""Trees go in; the SQL of one engine comes out. No other room writes SQL for an engine, and no room parses
it.
"""
