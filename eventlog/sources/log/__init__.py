"""The log as a source: who may read an event log table, how its rows are read, and how it flows."""
