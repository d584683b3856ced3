"""GBase 8s and Informix Change Data Capture: a binary stream of records becomes images of committed changes.

frames       bytes in any cut become records, by their sizes alone
records      what the headers of the records hold
layout       the text that describes a table becomes columns with types
values       one column's bytes become a value and back; packed holds the base-100 form
rows         a whole row's bytes become its values, compiled for its table
reader       records become transactions, and those images
source       the images for the publisher; session and driver talk to a server, emulator is one
"""
