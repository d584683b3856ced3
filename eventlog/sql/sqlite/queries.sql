-- clock: the database's own time, in the form that event_time has
SELECT strftime('%Y-%m-%d %H:%M:%f', 'now');
