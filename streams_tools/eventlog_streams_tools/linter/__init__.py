"""Tools for LINTER's replication queue.

commands     `eventlog decode linter` and `emulate linter`
dump         every operation of a queue, with its rows and values
packed       the record codec `packed-v1`
emulator     the inverse of the source: operations in, queue rows out
queue        a queue in a database, made and filled
"""
