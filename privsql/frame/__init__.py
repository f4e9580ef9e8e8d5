"""A pandas frame goes in; the budget that it shares, and the arguments of df.dp, come out. The door itself is
pandas.py.
"""
