"""One batch, all the way round, and what outputs did with it."""
