"""The status page: what the log holds and how it flows, drawn on the server, and buttons to act on
rows; and the figures that programs ask for at its address.
"""
