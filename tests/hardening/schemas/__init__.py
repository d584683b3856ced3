"""Schemas with the shapes of well-known sample databases, random work on them, and a replayer that believes nothing."""
