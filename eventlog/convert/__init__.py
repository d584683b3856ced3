"""Bulk conversion: any number of log rows or images in, part files or sent documents and an outcome
for each of them out.

    settings    what is converted, how, and where to
    inputs      files are found and cut into units; `reading`, `lines` and `rows` make record
                batches of them
    step        whole objects in order become results, by the daemon's rules and its writers
    forms       what a format writes of changes: `to_xds`, `to_change_tables`, `to_messages`;
                `to_changes` for DataFrames
    partitions  files of record batches, and sorting in bounded memory
    tasks       rows are brought to partitions and decided; `writing` makes parts and outcomes of
                what was decided
    pipeline    the one way through these tasks; `local` is the engine of one machine,
                `eventlog_spark` the other one
    commit      all of it appears at once, or not at all
    streams     captured streams take a way of their own, for their images are whole and in their order

Law: what is written depends on the input's rows and on the options, and on nothing else: not on the
engine, the number of processes, the order of files or how they are cut. Only `settings` may be
imported where pyarrow is missing.
"""
