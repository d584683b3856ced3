-- clock: the database's own time, in the form that event_time has
SELECT UTC_TIMESTAMP(6);
