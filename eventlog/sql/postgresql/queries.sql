-- clock: the database's own time, in the form that event_time has
SELECT (CURRENT_TIMESTAMP AT TIME ZONE 'UTC');
