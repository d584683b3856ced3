"""Capture: the log is installed, roles get their rights, and triggers write every change of a table
into the log.
"""
