"""Comparing tables: which rows differ, by hashes of ranges, and only then by their values.

    texts     the canonical text of a value, its hash, and when two values are the same; pure
    ranges    ranges of keys, their buckets, and which of them differ; pure
    sides     what is compared: the rows of one side
    tables    a side that a database hashes
    scratch   a side in a temporary file, for what no database hashes: files, histories, rows behind
              a policy
    pace      how fast, and when, it may read
    known     ranges that are recognised by two numbers
    engine    the comparison

Law: a row that is equal on both sides is never named, and one that differs always is, unless two of
its texts have the same hash of 60 bits. Different hashes alone say nothing: what is named has been
read and compared value by value.
"""
