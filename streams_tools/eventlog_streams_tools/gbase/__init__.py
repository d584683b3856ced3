"""Tools for the streams of GBase 8s and Informix.

commands     `eventlog decode gbase` and `emulate gbase`
dump         every record of a stream, field by field
dirty        reads of a buffer in which bytes of earlier reads remain
emulator     a server to try things on
"""
