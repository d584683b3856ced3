"""Bulk conversion: many log rows in, part files of documents and an outcome for every row out.

    settings  what is converted, how, and where to
    inputs    files and databases become record batches of one schema
    place     every row gets the number of its object, by which rows are brought together
    decide    whole objects in order become rendered changes and outcomes, by the daemon's rules and its XDS writer
    order     rendered changes are brought into the order of their positions
    parts     part files and outcomes are written
    commit    all of it appears at once, or not at all
    local     does this with the processes of one machine

Law: what is written depends on the input's rows and on the options, and on nothing else: not on the engine, the number
of processes, the order of files or how they are cut. Only `settings` may be imported where pyarrow is missing.
"""
