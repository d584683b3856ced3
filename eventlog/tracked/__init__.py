"""What is tracked for a log, as its owner has entered it: read by the publisher, `check` and the page; written by `capture`."""
