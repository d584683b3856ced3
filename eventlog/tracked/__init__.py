"""What is tracked for a log, as its owner has entered it: read by whoever publishes, checks or shows; written by `capture`."""
