"""Databases: dialects, queries, and what tables look like."""
