-- One publisher a log, and what it must know between two turns: who holds the lock, and which rows wait.

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
LIMIT 1;

-- late_numbers: numbers of rows in these gaps that no output has parked, each gap by the index
SELECT waiting./* record_id */record_id
FROM json_each(:gaps) AS gap
CROSS JOIN /* log */event_log AS waiting
  ON waiting./* record_id */record_id BETWEEN json_extract(gap.value, '$[0]') AND json_extract(gap.value, '$[1]')
WHERE waiting./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* parked */event_log_parked AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id)
ORDER BY waiting./* record_id */record_id LIMIT :limit;

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log AS tried
WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND tried./* status */status = 'N';

-- lock_mark: makes or replaces a mark if the lock is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_read: the mark of who holds the lock, if there is one, and the database's clock
SELECT (SELECT value FROM /* marks */event_log_mark WHERE name = 'publisher'), strftime('%Y-%m-%dT%H:%M:%f', 'now');

-- lock_until: expression: when a lease ends that begins now
strftime('%Y-%m-%dT%H:%M:%f', 'now', :lease || ' seconds');

-- lock_make: takes the lock for :lease seconds where there is no mark
INSERT INTO /* marks */event_log_mark (name, value)
VALUES ('publisher', /* until */'2026-11-21T02:00:45.123' || ' ' || :token)
ON CONFLICT (name) DO NOTHING;

-- lock_replace: takes the lock for :lease seconds if the mark is still as it was read
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || :token
WHERE name = 'publisher' AND value = :former;

-- session_limits: nothing waits for a lock for ever; a statement cannot be limited here
PRAGMA busy_timeout = /* lock_ms */30000;
