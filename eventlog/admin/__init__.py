"""What an operator does with a log: looks at it, cares for its rows, checks it."""
