"""LINTER's replication queue: rows of DISPATCH_QUEUE in, images of committed transactions out.

rows        one row of the queue, and what its columns mean
coding      which operation a TYP is: two codings are documented
parts       the rows of one operation joined, and its two parts cut out
layouts     the columns of a source table as a record has them
packed      the record codec `packed-v1`; `codecs` is where others come from
images      operations in the order of the commits, as images
exports     queue rows from files; `queue` from a database
source      the seam: batches, and what must survive a crash
emulator    the inverse: operations in, queue rows out
"""
