"""Mutation testing: one small fault after the other is put into a copy of the code, and the tests that judge it must notice."""
