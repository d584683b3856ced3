"""`eventlog verify`: whether an output holds what its source has, and the repair of what it does
not.

    expected    what an output is to hold of each table, after its policies
    history     the rows that changes add up to
    targets     what it holds: tables, mirrors and change tables of a database, associations;
                `files`, `topics`, `lakes`: what others hold
    objects     what the log says about objects that differ
    proof       the proof of a table: what differs, what is on its way, and why
    opening     what an output holds, opened to be read
    background  the publisher's regular proofs; `schedule` says when, `breaking` ends them,
                `proofs` shows the last ones
    report      reports for people and for programs
    command     the command; it comes in by an entry point of `eventlog.commands`
"""
