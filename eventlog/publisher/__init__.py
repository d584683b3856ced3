"""The journal of sealed batches and the consumer of each output: the heart of the publisher."""
