"""Databases, each in a folder with its dialect, its SQL, its keys and its types; they come in by entry points."""
