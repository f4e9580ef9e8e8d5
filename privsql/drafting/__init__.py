"""For the owner of data: a schema goes in, a draft of a policy comes out; a policy goes in, what it means
comes out.
"""
