"""Trees go in; SQL of one engine comes out. No other room writes SQL for an engine, and no room reads it."""
