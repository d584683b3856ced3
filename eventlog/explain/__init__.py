"""`eventlog explain`, `policy`, `rules` and `validate`: what became of a row and why, what policies
make of changes, and whether a document is XDS.

    rows             one row: the rules run once more, and nothing is marked
    policies         what policies make of changes, step by step
    masking          what is not shown of a log: values that policies hide from every output
    command          `explain`; the commands of the group `policy`, `rules` and `validate` stand
                     beside it; they come in by entry points of `eventlog.commands`
"""
