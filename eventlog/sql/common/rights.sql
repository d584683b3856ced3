-- The least that each of three roles needs: who installs, who writes, who publishes. Nothing of it is for a database without roles.
-- A query that a database lacks is one that the role needs nothing for.

-- publisher_on_log: reads rows, gives them their letter, deletes them when it is told to
GRANT SELECT, UPDATE (/* status */status), DELETE ON /* table */event_log TO /* role */publisher;

-- publisher_on_companion: keeps its own books
GRANT SELECT, INSERT, UPDATE, DELETE ON /* table */event_log_outcome TO /* role */publisher;

-- publisher_on_version: sees which migration the log has
GRANT SELECT ON /* table */event_log_version TO /* role */publisher;

-- publisher_on_table: reads rows back
GRANT SELECT ON /* table */usr TO /* role */publisher;

-- given_read: the grants that gave something new, as they were run
SELECT value FROM /* marks */event_log_mark WHERE name LIKE 'given: %' ORDER BY name;
