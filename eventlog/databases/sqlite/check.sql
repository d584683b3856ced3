-- What `eventlog check` asks. A finding is a row of three texts: level (warning or failure), what was found, what mends it.
-- An attempt touches no row; it fails where the connected user lacks the right.

-- server_version: what runs
SELECT 'SQLite ' || sqlite_version();

-- make_index: what a DBA runs where polling would read all rows
CREATE INDEX /* index */event_log_new ON /* log */event_log (/* record_id */record_id) WHERE /* status */status = 'N';

-- clock: the database's own time, in the form that event_time has
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now');

-- database_zone: the offset of the machine's clock now; it has no name here
SELECT NULL, CAST(ROUND((julianday('now', 'localtime') - julianday('now')) * 86400) AS INTEGER);
