"""`eventlog demo`: a database, a log, triggers, changes and what is published of them, on SQLite and
in a minute.
"""
