"""Relations go in; the domains of their columns, and how far one person can move an aggregate, come out."""
