"""Databases: dialects, queries, migrations, triggers, and what tables look like."""
