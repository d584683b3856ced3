"""The log source: rows of an event log table, read under a lock and marked with what became of
them.
"""
