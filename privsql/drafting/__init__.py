"""For data owners: a schema goes in, a draft policy comes out; a policy goes in, its meaning comes out."""
