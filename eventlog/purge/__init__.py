"""`eventlog purge`: deletes old rows of a log, a few thousand at a time, after an archive of them is
durable.

    archive    Parquet files of rows, in a folder or at a place of objects
    deleting   the ranges of a log that are old, and how they go
    command    the command; it comes in by an entry point of `eventlog.commands`

Law: a row is deleted only after it stands in an archive that a power cut does not undo, if there is
to be one. Each range is deleted in a transaction of its own, so that nobody waits long for its
locks.
"""
