"""The change-tables format: rows with header columns, a table for each source table."""
