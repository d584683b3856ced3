-- What the database's own catalog tells of tables and triggers.

-- declared_types: the types of a table's columns in the words of whoever made it
SELECT name, type FROM pragma_table_xinfo(:table) WHERE type <> '';

-- made_types: types cannot be made here

-- column_collations: SQLite compares by the column's own collation without being told

-- our_triggers: every trigger that bears our marker, with its text
SELECT name AS trigger_name, NULL AS table_schema, tbl_name AS table_name, sql AS marker, sql AS source, 1 AS enabled
FROM sqlite_master WHERE type = 'trigger' AND instr(sql, '/* eventlog {') > 0 ORDER BY name;

-- trigger_text: told above, as it was sent

-- instead_of_triggers: how many triggers, not ours, do the writing of a view; the schema is of no account
SELECT COUNT(*) FROM sqlite_master WHERE type = 'trigger' AND tbl_name = :table AND instr(sql, '/* eventlog {') = 0
AND :schema IS NULL;

-- passed_by: every trigger is a row trigger here

-- foreign_owners: there are no owners

-- partitions: none of them is a table of its own here

-- settle_names: conditions are tried in the search path of triggers, where there is one

-- try_condition: whether a condition can be asked of a table
SELECT COUNT(*) FROM /* target */usr WHERE /* condition */(1 = 1) AND 1 = 0;
