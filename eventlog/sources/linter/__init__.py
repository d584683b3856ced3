"""LINTER's replication queue: rows of DISPATCH_QUEUE in, images of committed transactions out.

rows         one row of the queue, and what its columns mean
operations   which operation a TYP is; the rows of one operation joined, and its two parts cut out
layouts      the columns of a source table as a record has them
tables       the source's tables, and where other codecs come from
telling      operations as images; blobs for those on BLOBs
images       transactions in the order of the commits
exports      queue rows from files; `queue` from a database
source       the images of a queue for the one source of streams
"""
