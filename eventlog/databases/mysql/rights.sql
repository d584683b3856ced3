-- The least that each of three accounts needs. A trigger runs with the rights of the account that made it, so writers need
-- none on the log. Rights that a writer has on the whole database reach the log too and cannot be taken from it alone.

-- role_at_host: an account that belongs to a host
/* user */app@/* host */localhost;

-- installer_on_schema: keeps writers waiting while a trigger is replaced; the right is one on whole databases only
GRANT LOCK TABLES ON * TO /* role */installer;

-- installer_on_log: makes the log and its companions, and its triggers write into them with this account's rights
GRANT CREATE, DROP, ALTER, INDEX, REFERENCES, SELECT, INSERT, UPDATE, DELETE ON /* table */event_log TO /* role */installer;

-- installer_on_table: makes triggers, which read the row before and after
GRANT TRIGGER, SELECT ON /* table */usr TO /* role */installer;

-- columns_read: the columns that may be read, where others are left out; SHOW VIEW lets an account see what the table looks like
(/* names */idu), SHOW VIEW;

-- held_rights: what an account may do to a table by a grant of its own, on it, its database or everything
SELECT privilege_type FROM information_schema.user_privileges
WHERE grantee = CONCAT('''', :role, '''@''', COALESCE(:host, '%'), '''')
  AND privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'DROP', 'TRIGGER')
UNION SELECT privilege_type FROM information_schema.schema_privileges
WHERE grantee = CONCAT('''', :role, '''@''', COALESCE(:host, '%'), '''') AND DATABASE() LIKE table_schema
UNION SELECT privilege_type FROM information_schema.table_privileges
WHERE grantee = CONCAT('''', :role, '''@''', COALESCE(:host, '%'), '''') AND table_schema = DATABASE() AND table_name = :table
UNION SELECT privilege_type FROM information_schema.column_privileges
WHERE grantee = CONCAT('''', :role, '''@''', COALESCE(:host, '%'), '''') AND table_schema = DATABASE() AND table_name = :table
ORDER BY 1;

-- given_rights: what an account was given, to see whether a statement gave something
SHOW GRANTS FOR /* role */app;

-- connected_account: the account that rights were given to, with its host
SELECT CURRENT_USER();
