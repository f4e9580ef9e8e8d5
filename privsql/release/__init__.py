"""A workload goes in; a QueryRelease that answers every query of it, or a synthetic table, comes out."""
