-- Locks on tables, and who has them.

-- table_holders: sessions that keep others from a table that a statement names, the oldest transaction first; only a
-- trigger that is made lets readers go on
SELECT format('connection %s of %s%s, %s for %s s, has %s', activity.pid, activity.usename,
              ' (' || nullif(activity.application_name, '') || ')', activity.state,
              floor(extract(epoch FROM clock_timestamp() - activity.xact_start)), string_agg(DISTINCT locked.relname, ', '))
FROM pg_locks AS held
JOIN pg_class AS locked ON locked.oid = held.relation AND locked.relkind IN ('r', 'p', 'v', 'f')
JOIN pg_stat_activity AS activity ON activity.pid = held.pid
WHERE held.granted AND held.locktype = 'relation' AND held.pid <> pg_backend_pid() AND activity.datname = current_database()
  AND CAST(:needing AS text) ~ ('(^|\W)' || regexp_replace(locked.relname, '(\W)', '\\\1', 'g') || '($|\W)')
  AND NOT (held.mode IN ('AccessShareLock', 'RowShareLock') AND CAST(:needing AS text) ~* '^\s*create ')
GROUP BY activity.pid, activity.usename, activity.application_name, activity.state, activity.xact_start
ORDER BY activity.xact_start;
