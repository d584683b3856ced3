"""The command `eventlog`: a module for each group of commands."""
