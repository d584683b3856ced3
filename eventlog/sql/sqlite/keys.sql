-- The keys of all tables at once.

-- primary_keys: the columns of every table's key in their order; SQLAlchemy would read through all of sqlite_master for each
SELECT t.name AS table_name, p.name AS column_name
FROM sqlite_master AS t JOIN pragma_table_info(t.name, 'main') AS p
WHERE t.type = 'table' AND p.pk > 0 ORDER BY t.name, p.pk;

-- foreign_keys: every table's foreign keys as they were declared, a row for each column; no referred column means the key
SELECT t.name AS table_name, f.id, f."table" AS referred_table, f."from" AS column_name, f."to" AS referred_column
FROM sqlite_master AS t JOIN pragma_foreign_key_list(t.name, 'main') AS f
WHERE t.type = 'table' ORDER BY t.name, f.id DESC, f.seq;
