"""The history kit: random histories of a log by seed, which attack the publisher from outside, and
an oracle that judges them.

It knows promises only: rows and their letters, what each target has, in which order, what operators
were told, records. How a publisher keeps them is its own business, so that the same kit judges any
heart (`hearts.py` says how one is driven).
"""
