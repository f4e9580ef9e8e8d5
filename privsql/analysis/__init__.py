"""Relations go in; what their columns may hold, and how far one person can move an aggregate, come out."""
