"""A frame that pandas made goes in; whose budget counts for it, and words of df.dp, come out. The door itself
is pandas.py.
"""
