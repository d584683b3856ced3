-- The least that each of three roles needs: who installs, who writes, who publishes. Nothing of it is for a database without roles.
-- A query that a database lacks is one that the role needs nothing for.

-- publisher_on_log: reads rows, gives them their status, deletes them when it is told to
GRANT SELECT, UPDATE (/* status */status), DELETE ON /* table */event_log TO /* role */publisher;

-- publisher_on_companion: keeps its own books
GRANT SELECT, INSERT, UPDATE, DELETE ON /* table */event_log_outcome TO /* role */publisher;

-- publisher_on_registry: sees what is tracked, and which migration the log has; only the log's owner says so
GRANT SELECT ON /* table */event_log_version TO /* role */publisher;

-- publisher_on_table: reads rows back, without the columns that are left out
GRANT SELECT/* columns */ ON /* table */usr TO /* role */publisher;

-- columns_read: the columns that may be read, where others are left out
(/* names */idu);
