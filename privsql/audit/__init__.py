"""A plan goes in; an attempt to break its promise comes out: tables that pass its bounds, events that pass
its epsilon.
"""
