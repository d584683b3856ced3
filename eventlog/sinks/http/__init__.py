"""The HTTP sink: each document is POSTed, and the answer says what becomes of its events."""
