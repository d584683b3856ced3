-- Queries of installation.

-- count_waiting: rows that nobody has published yet
SELECT COUNT(*) FROM /* log */event_log WHERE /* status */status = 'N' AND CAST(/* status */status AS BINARY) = 'N';
