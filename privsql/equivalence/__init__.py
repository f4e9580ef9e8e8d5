"""Relations go in; a normal form of what they compute comes out, whatever names they use. Equivalent queries
share one stored answer.
"""
