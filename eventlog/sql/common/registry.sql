-- The registry: what the log's owner tracks, and by which triggers. Nobody else writes it, so what stands in it is believed.
-- What enters a class is written by eventlog/capture/registry_writer.py.

-- home_schema: the schema of a table that is named without one
'main';

-- kept_schema: how the registry keeps the schema of a table
/* schema */'main';

-- schema_of_class: the schema of a class as it is named
schema_name;

-- registry_read: every tracked class
SELECT id, /* schema_of_class */NULL AS schema_name, table_name, relation, options, watched, style FROM /* tracked */event_log_tracked
ORDER BY id;

-- registry_triggers: the triggers of every tracked class
SELECT tracked, name, table_name, function_name, digest FROM /* triggers */event_log_trigger ORDER BY tracked, name;

-- relation_number: the number of a table, where tables have numbers
NULL;

-- definer: the account with whose rights a trigger runs, where that is told
NULL;
