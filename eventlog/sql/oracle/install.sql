-- Queries of installation, the same in every database.

-- count_waiting: rows that nobody has published yet
SELECT COUNT(*) FROM /* log */event_log WHERE /* status */status = 'N';
