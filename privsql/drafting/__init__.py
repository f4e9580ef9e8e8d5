"""For data owners: a schema goes in, a draft of a policy comes out; a policy goes in, an explanation comes out."""
