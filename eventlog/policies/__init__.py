"""Policies: which changes an output gets, and under which names and with which values. Pure: changes
in, changes out.

Steps are read from the configuration, bound to the tables of a source, and applied to one change
after the other, between the rules and a format. The publisher, conversions, Spark and `eventlog
explain` call the same.
"""
