-- What the database's own catalog tells of tables and triggers.

-- declared_types: the types of a table's columns in the words of whoever made it
SELECT name, type FROM pragma_table_xinfo(:table) WHERE type <> '';
