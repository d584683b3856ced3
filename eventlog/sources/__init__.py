"""Where Events come from: event logs, the change streams of GBase 8s and Informix, LINTER's queue."""
