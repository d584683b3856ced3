-- What the database's own catalog tells of tables and triggers.

-- declared_types: the types of a table's columns in Oracle's words, since SQLAlchemy does not know them all
SELECT column_name AS name,
       CASE
           WHEN data_type IN ('VARCHAR2', 'CHAR', 'NVARCHAR2', 'NCHAR') THEN data_type || '(' || char_length || ')'
           WHEN data_type = 'RAW' THEN 'RAW(' || data_length || ')'
           WHEN data_type = 'FLOAT' THEN 'FLOAT(' || data_precision || ')'
           WHEN data_type = 'NUMBER' AND data_scale IS NOT NULL
               THEN 'NUMBER(' || NVL(data_precision, 38) || ',' || data_scale || ')'
           ELSE data_type
       END AS type
FROM all_tab_columns
WHERE owner = :schema AND table_name = :table;

-- home_schema: the schema of a table that is named without one
SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA');

-- log_owner: whose schema the registry stands in, and whether that is the connected user's
SELECT owner, CASE WHEN owner = USER THEN 1 ELSE 0 END FROM all_tables
WHERE UPPER(/* registry */'EVENT_LOG_TRIGGER') IN (UPPER(owner || '.' || table_name), UPPER(table_name)) AND ROWNUM = 1;

-- fingerprint: what changes when somebody changes a trigger or its package
(SELECT TO_CHAR(SUM(ORA_HASH(type || line || text))) || ' ' || COUNT(*) FROM all_source
 WHERE owner = /* schema */USER AND (type = 'TRIGGER' AND name = /* name */'EVENT_LOG_USR_CHANGE'
   OR type IN ('PACKAGE', 'PACKAGE BODY') AND name = /* function */'EVENT_LOG_USR_CHANGE_12345678'));

-- standing_triggers: the triggers of the registry as the catalog has them; one that is disabled or does not compile sleeps, and
-- so does one whose package does not
SELECT entered.tracked AS tracked, entered.name AS entered, all_triggers.trigger_name AS trigger_name,
       all_triggers.table_owner AS table_schema, all_triggers.table_name AS table_name, NULL AS relation,
       CASE WHEN all_triggers.status = 'ENABLED' AND NOT EXISTS (
           SELECT 1 FROM all_objects made
           WHERE made.owner = class.schema_name AND made.status = 'INVALID'
             AND (made.object_type = 'TRIGGER' AND made.object_name = entered.name
               OR made.object_type IN ('PACKAGE', 'PACKAGE BODY') AND made.object_name = entered.function_name))
         THEN 'O' ELSE 'D' END AS fires,
       CASE WHEN entered.fingerprint = (
           SELECT TO_CHAR(SUM(ORA_HASH(told.type || told.line || told.text))) || ' ' || COUNT(*) FROM all_source told
           WHERE told.owner = class.schema_name AND (told.type = 'TRIGGER' AND told.name = entered.name
             OR told.type IN ('PACKAGE', 'PACKAGE BODY') AND told.name = entered.function_name))
         THEN 1 ELSE 0 END AS unchanged,
       all_triggers.trigger_body AS source
FROM /* triggers */event_log_trigger entered
JOIN /* tracked */event_log_tracked class ON class.id = entered.tracked
JOIN all_triggers ON all_triggers.owner = class.schema_name AND all_triggers.trigger_name = entered.name
ORDER BY all_triggers.table_owner, all_triggers.trigger_name;

-- similar_triggers: triggers that look like ours: they are called so, and write to the log
SELECT all_triggers.trigger_name AS trigger_name, all_triggers.table_owner AS table_schema, all_triggers.table_name AS table_name
FROM all_triggers
WHERE SUBSTR(all_triggers.trigger_name, 1, LENGTH(:prefix)) = UPPER(:prefix) AND :writes IS NOT NULL
ORDER BY all_triggers.table_owner, all_triggers.trigger_name FETCH FIRST :most ROWS ONLY;

-- always_unique: the columns of the tables' unique indexes and constraints of which no two rows have the same at any time; a
-- deferrable constraint is looked at when its transaction ends, and the index that Oracle makes for it is not unique
SELECT all_indexes.table_name AS table_name, all_indexes.index_name AS index_name, all_ind_columns.column_name AS column_name
FROM all_indexes
JOIN all_ind_columns ON all_ind_columns.index_owner = all_indexes.owner AND all_ind_columns.index_name = all_indexes.index_name
WHERE all_indexes.table_owner = :schema
  AND all_indexes.uniqueness = 'UNIQUE' AND all_indexes.index_type NOT LIKE 'FUNCTION-BASED%'
UNION ALL
SELECT all_constraints.table_name, all_constraints.constraint_name, all_cons_columns.column_name
FROM all_constraints
JOIN all_cons_columns ON all_cons_columns.owner = all_constraints.owner
  AND all_cons_columns.constraint_name = all_constraints.constraint_name
WHERE all_constraints.owner = :schema
  AND all_constraints.constraint_type IN ('P', 'U') AND all_constraints.deferrable = 'NOT DEFERRABLE'
  AND all_constraints.status = 'ENABLED' AND all_constraints.validated = 'VALIDATED';

-- instead_of_triggers: how many triggers, not ours, do the writing of a view
SELECT COUNT(*) FROM all_triggers
WHERE table_owner = :schema AND table_name = :table AND trigger_type = 'INSTEAD OF'
  AND trigger_name NOT IN (SELECT name FROM /* triggers */event_log_trigger);

-- table_stamp: changes whenever a table with a trigger of ours does, or one of them; and once more after it, for the time of
-- a change is known by the second, and another may come in the same one
SELECT DISTINCT all_triggers.trigger_name, all_objects.object_name, all_objects.object_type,
  TO_CHAR(all_objects.last_ddl_time, 'YYYY-MM-DD HH24:MI:SS'),
  CASE WHEN all_objects.last_ddl_time > SYSDATE - 3 / 86400 THEN 1 ELSE 0 END
FROM /* triggers */event_log_trigger entered
JOIN /* tracked */event_log_tracked class ON class.id = entered.tracked
JOIN all_triggers ON all_triggers.owner = class.schema_name AND all_triggers.trigger_name = entered.name
JOIN all_objects ON all_objects.owner = all_triggers.table_owner
  AND all_objects.object_name IN (all_triggers.table_name, all_triggers.trigger_name)
WHERE all_objects.object_type IN ('TABLE', 'TRIGGER')
ORDER BY all_triggers.trigger_name, all_objects.object_name, all_objects.object_type;

-- sees_triggers: whether the connected user would be told of a table's triggers
SELECT COUNT(*) FROM dual
WHERE :schema = USER OR EXISTS (SELECT 1 FROM session_privs WHERE privilege = 'CREATE ANY TRIGGER') OR :table IS NULL;

-- lossy_columns: columns of national characters where the database's own character set may lack them: the log, and every text
-- in PL/SQL, would have question marks in their place, and two values could look the same
SELECT column_name FROM all_tab_columns
WHERE owner = :schema AND table_name = :table AND data_type IN ('NCHAR', 'NVARCHAR2')
  AND NOT EXISTS (SELECT 1 FROM nls_database_parameters
                  WHERE parameter = 'NLS_CHARACTERSET' AND value IN ('AL32UTF8', 'UTF8'))
ORDER BY column_id;

-- triggers_between: enabled triggers of others that may write to a table or to its child tables before a statement ends.
-- These are the ones that fire for statements, and the ones that speak of more than their own table and sequences.
SELECT theirs.trigger_name FROM all_triggers theirs
WHERE theirs.table_owner = :schema AND theirs.table_name = :table AND theirs.status = 'ENABLED'
  AND theirs.trigger_name NOT IN (SELECT name FROM /* triggers */event_log_trigger)
  AND (theirs.trigger_type NOT IN ('BEFORE EACH ROW', 'AFTER EACH ROW')
    OR EXISTS (SELECT 1 FROM all_source
               WHERE all_source.owner = theirs.owner AND all_source.name = theirs.trigger_name
                 AND all_source.type = 'TRIGGER' AND UPPER(all_source.text) LIKE '%EXECUTE%IMMEDIATE%')
    OR EXISTS (SELECT 1 FROM all_dependencies spoken
               WHERE spoken.owner = theirs.owner AND spoken.name = theirs.trigger_name AND spoken.type = 'TRIGGER'
                 AND spoken.referenced_owner NOT IN ('SYS', 'PUBLIC')
                 AND spoken.referenced_type NOT IN ('SEQUENCE', 'SYNONYM')
                 AND NOT (spoken.referenced_owner = theirs.table_owner AND spoken.referenced_name = theirs.table_name)))
ORDER BY theirs.trigger_name;

-- loose_columns: the columns of a table in which texts that differ are equal, by what, and whether only blanks at their end
-- make no difference; what a column leaves to the session is compared byte by byte, for ours say so; and how the server
-- compares a text as the column does
SELECT column_name, CASE WHEN collation IN ('BINARY', 'USING_NLS_COMP') THEN data_type ELSE collation END,
       CASE WHEN collation IN ('BINARY', 'USING_NLS_COMP') THEN 1 ELSE 0 END,
       CASE WHEN collation NOT IN ('BINARY', 'USING_NLS_COMP') THEN 'NLSSORT(?, ''NLS_SORT=' || collation || ''')' END
FROM all_tab_columns
WHERE owner = COALESCE(:schema, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) AND table_name = :table
  AND (data_type IN ('CHAR', 'NCHAR') OR collation NOT IN ('BINARY', 'USING_NLS_COMP'));

-- are_alike: whether the server takes two texts for one
SELECT CASE WHEN /* one */'a' = /* other */'b' THEN 1 ELSE 0 END FROM dual;

-- watermark_schemas: the schemas that have watermarks of mirrors; NULL stands for the connection's own
SELECT NULLIF(owner, SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA')) FROM all_tables WHERE table_name = 'EVENTLOG_APPLIED';
