"""GBase 8s and Informix Change Data Capture: a binary stream of records becomes images of committed
changes.

records      what the records hold, and how bytes in any cut become records, by their sizes alone
layout       the text that describes a table becomes columns with types
packed       the base-100 form of numbers and times
values       one column's bytes become a value and back
rows         a whole row's bytes become its values
reader       records become committed transactions
images       those become images, each with the table that the stream and the settings describe
source       the images for the publisher, from a session or files; session and drivers talk to a server
"""
