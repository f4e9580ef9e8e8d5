"""SQL text goes in; a tree of our own relations comes out, or a refusal with its place."""
