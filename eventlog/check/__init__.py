"""Says whether a publisher could work here: configuration, database, log, triggers, outputs.

Changes nothing.
"""
