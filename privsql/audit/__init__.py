"""A plan goes in; an attempt to break its privacy promise comes out: neighbouring tables that exceed its
bounds, events that exceed its epsilon.
"""
