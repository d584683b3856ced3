"""The publisher as it lives: one batch after the other, waiting, standing by, failing and coming back, being watched."""
