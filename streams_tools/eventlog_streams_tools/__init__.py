"""Tools for captured streams: emulators, readable dumps, and readings that are guesses or repairs.

They come into eventlog by its entry points; nothing of eventlog imports them.
"""
