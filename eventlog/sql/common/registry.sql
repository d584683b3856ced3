-- The registry: what the log's owner tracks, and by which triggers. Nobody else writes it, so what stands in it is believed.
-- Its values are constants in these statements, so that a script and the program run the same.

-- home_schema: the schema of a table that is named without one
'main';

-- schema_of_class: the schema of a class as it is named; none where tables have none
NULL;

-- registry_read: every tracked class
SELECT id, /* schema_of_class */NULL AS schema_name, table_name, relation, options, watched, style FROM /* tracked */event_log_tracked
ORDER BY id;

-- registry_triggers: the triggers of every tracked class
SELECT tracked, name, table_name, function_name, digest FROM /* triggers */event_log_trigger ORDER BY tracked, name;

-- class_number: the number of a tracked class
(SELECT id FROM /* tracked */event_log_tracked WHERE schema_name = /* schema */'main' AND table_name = /* table */'usr');

-- class_add: enters a class
INSERT INTO /* tracked */event_log_tracked (id, schema_name, table_name, relation, options, watched, style, all_columns,
  primary_key, deferred)
SELECT COALESCE(MAX(id), 0) + 1, /* schema */'main', /* table */'usr', /* relation */NULL, /* options */'{}', /* watched */'[]',
  /* style */'row-back', /* all_columns */1, /* primary_key */1, /* deferred */0
FROM /* tracked */event_log_tracked;

-- orphans_remove: takes triggers off whose class is gone, so that a number that is given again has none
DELETE FROM /* triggers */event_log_trigger WHERE tracked NOT IN (SELECT id FROM /* tracked */event_log_tracked);

-- class_change: enters what a class is called, and tracked with, now
UPDATE /* tracked */event_log_tracked SET schema_name = /* schema */'main', table_name = /* table */'usr',
  relation = /* relation */NULL, options = /* options */'{}', watched = /* watched */'[]', style = /* style */'row-back',
  all_columns = /* all_columns */1, primary_key = /* primary_key */1, deferred = /* deferred */0
WHERE id = /* class */1;

-- class_remove: takes a class off
DELETE FROM /* tracked */event_log_tracked WHERE id = /* class */1;

-- trigger_add: enters a trigger before it is made, so that none stands which nobody has entered
INSERT INTO /* triggers */event_log_trigger (tracked, name, table_name, function_name, definer, digest, part)
VALUES (/* class */1, /* name */'event_log_usr_insert', /* table */'usr', /* function */NULL, /* definer */NULL, /* digest */'', /* part */'whole');

-- trigger_change: enters that a trigger is to be made anew
UPDATE /* triggers */event_log_trigger SET table_name = /* table */'usr', function_name = /* function */NULL,
  definer = /* definer */NULL, digest = /* digest */'', part = /* part */'whole', fingerprint = NULL
WHERE tracked = /* class */1 AND name = /* name */'event_log_usr_insert';

-- trigger_remove: takes a trigger off that is gone
DELETE FROM /* triggers */event_log_trigger WHERE tracked = /* class */1 AND name = /* name */'event_log_usr_insert';

-- trigger_fingerprint: keeps the text of a trigger that was made, as the database gives it back
UPDATE /* triggers */event_log_trigger SET fingerprint = /* fingerprint */NULL
WHERE tracked = /* class */1 AND name = /* name */'event_log_usr_insert';

-- triggers_remove: takes the triggers of a class off
DELETE FROM /* triggers */event_log_trigger WHERE tracked = /* class */1;

-- relations_remove: forgets what the triggers of a class depend on
DELETE FROM /* relations */event_log_relation WHERE tracked = /* class */1;

-- columns_remove: forgets the columns of a class
DELETE FROM /* columns */event_log_column WHERE tracked = /* class */1;

-- relation_add: enters a table on which a class's triggers depend
INSERT INTO /* relations */event_log_relation (tracked, schema_name, table_name, relation, role)
VALUES (/* class */1, /* schema */'main', /* table */'usr', /* relation */NULL, /* role */'table');

-- relation_number: the number of a table, where tables have numbers
NULL;

-- definer: the account with whose rights a trigger runs, where that is told
NULL;
