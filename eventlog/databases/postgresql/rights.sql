-- The least that each of three roles needs; a trigger's function runs with the rights of whoever made it.

-- guard_function: nobody else makes triggers of their own with a function that writes into the log
REVOKE ALL ON FUNCTION /* function */event_log_usr_insert() FROM PUBLIC;

-- installer_on_schema: makes the log, its companions and the functions of the triggers
GRANT USAGE, CREATE ON SCHEMA /* schema */app TO /* role */installer;

-- installer_on_standing_log: the functions of its triggers write with its rights into a log that it did not make
GRANT SELECT, INSERT ON /* table */event_log TO /* role */installer;

-- installer_on_place: names tables of this schema
GRANT USAGE ON SCHEMA /* schema */app TO /* role */installer;

-- installer_on_table: only an owner of a table may comment on its triggers and drop them
GRANT /* owner */app TO /* role */installer;

-- installer_on_registry: only the log's owner says what is tracked; what a superuser installed, an installer takes over
ALTER TABLE /* table */event_log_tracked OWNER TO /* role */installer;

-- installer_on_function: what the registry's triggers run belongs to the log's owner
ALTER FUNCTION /* function */event_log_usr_insert() OWNER TO /* role */installer;

-- registry_functions: the functions of the log's owner that the registry names
SELECT proname FROM /* triggers */event_log_trigger AS entered
JOIN pg_class AS registry ON registry.oid = to_regclass(/* registry */'public.event_log_trigger')
JOIN pg_proc ON proname = entered.function_name AND pronamespace = registry.relnamespace AND proowner = registry.relowner
ORDER BY proname;

-- writer_on_log: none on it and what is beside it, whoever gave it: triggers write with the rights of who installed them
REVOKE ALL ON /* table */event_log FROM PUBLIC, /* role */writer;

-- publisher_on_schema: names the log
GRANT USAGE ON SCHEMA /* schema */app TO /* role */publisher;

-- publisher_on_place: names tables of this schema
GRANT USAGE ON SCHEMA /* schema */app TO /* role */publisher;

-- table_owner: who owns a table
SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = to_regclass(:place);

-- no_role: whether nobody is called so
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = CAST(:role AS name));

-- role_powers: what a member of a role gets beyond the role's tables: each role that is a superuser, may do what few may, or is
-- predefined, among the role itself and those that it is a member of, however far; `through` is the first step to it. A
-- membership that neither inherits nor may be set counts too, for it may be one that can be given on.
WITH RECURSIVE reached (oid, first) AS (
    SELECT oid, oid FROM pg_roles WHERE rolname = CAST(:role AS name)
    UNION
    SELECT roleid, CASE WHEN first = asked.oid THEN roleid ELSE first END
    FROM pg_auth_members JOIN reached ON member = reached.oid JOIN pg_roles AS asked ON asked.rolname = CAST(:role AS name)
)
SELECT rolname AS role, pg_get_userbyid(first) AS through, CASE
    WHEN rolsuper THEN 'is a superuser'
    WHEN rolcreaterole THEN 'may create roles'
    WHEN rolcreatedb THEN 'may create databases'
    WHEN rolbypassrls THEN 'bypasses row level security'
    WHEN rolreplication THEN 'may replicate'
    WHEN rolname ~ '^pg_' THEN 'comes with PostgreSQL'
  END AS power
FROM pg_roles JOIN reached USING (oid)
WHERE rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolreplication OR rolname ~ '^pg_'
ORDER BY rolsuper DESC, rolname <> CAST(:role AS name), rolname, through;

-- held_rights: what a role may do to a table, by a grant of its own, a role it is in, PUBLIC or its power
SELECT asked.privilege
FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'REFERENCES', 'DELETE', 'TRUNCATE', 'TRIGGER'])
     WITH ORDINALITY AS asked (privilege, place)
WHERE CASE WHEN asked.place <= 4 THEN has_any_column_privilege(CAST(:role AS name), CAST(:place AS text), asked.privilege)
      ELSE has_table_privilege(CAST(:role AS name), CAST(:place AS text), asked.privilege) END
ORDER BY asked.place;

-- given_rights: all rights on schemas and tables and all memberships, to see whether a statement gave something
SELECT md5(concat(
  (SELECT string_agg(concat(oid, nspacl), ' ' ORDER BY oid) FROM pg_namespace),
  (SELECT string_agg(concat(oid, relacl), ' ' ORDER BY oid) FROM pg_class WHERE relacl IS NOT NULL),
  (SELECT string_agg(concat(attrelid, attnum, attacl), ' ' ORDER BY attrelid, attnum) FROM pg_attribute WHERE attacl IS NOT NULL),
  (SELECT string_agg(concat(roleid, ' ', member), ' ' ORDER BY roleid, member) FROM pg_auth_members)));
