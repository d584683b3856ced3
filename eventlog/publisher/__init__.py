"""The journal of sealed batches and the consumer of one output: the next heart of the publisher."""
