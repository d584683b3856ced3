"""`eventlog explain` and `eventlog policy`: what became of a row and why, and what policies make of
changes.

    rows             one row: the rules run once more, and nothing is marked
    policies         what policies make of changes, step by step
    masking          what is not told of a log: values that policies hide from every output
    schema_mapping   a schema mapping of the identity engine as a policy
    command          `explain`, and `policy_command` the commands of the group `policy`; they come
                     in by entry points of `eventlog.commands`
"""
