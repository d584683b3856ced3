"""Bulk conversion: any number of log rows or images in, part files or sent documents and an outcome for each of them out.

    settings  what is converted, how, and where to
    inputs    files and databases become record batches of one schema
    place     every row gets the number of its object, by which rows are brought together
    decide    whole objects in order become rendered changes and outcomes, by the daemon's rules and its writers
    order     rendered changes are brought into the order of their positions
    parts     part files and outcomes are written
    commit    all of it appears at once, or not at all
    local     does this with the processes of one machine
    streams   captured streams take a way of their own, for their images are whole and in their order

Law: what is written depends on the input's rows and on the options, and on nothing else: not on the engine, the number
of processes, the order of files or how they are cut. Only `settings` may be imported where pyarrow is missing.
"""
