"""Publishing without triggers: tables are compared with what was published of them, cycle by cycle, with SELECT alone.

    settings    what can be set
    state       what was published, and what is still to be: an SQLite file
    reader      the cycles, as a stream

Law: a difference that was found stands in the state's queue, in the transaction that changes the state, before it is
published. So a crash at any point repeats, and never loses; and what comes again is the same.
"""
