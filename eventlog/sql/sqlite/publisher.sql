-- One publisher a log, and what it must know between two batches: who holds the lock, which rows wait, what is retried.

-- except_passed: condition: rows of objects that are passed over from a row of theirs on
(CASE WHEN (waiting./* table_name */table_name COLLATE BINARY, waiting./* table_key */table_key COLLATE BINARY)
           IN (SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]') FROM json_each(:passed))
      THEN waiting./* record_id */record_id
           < (SELECT min(json_extract(value, '$[2]')) FROM json_each(:passed)
              WHERE json_extract(value, '$[0]') = waiting./* table_name */table_name
                AND json_extract(value, '$[1]') = waiting./* table_key */table_key)
      ELSE 1 END);

-- unread_tables: condition: tables whose rows may not be read back are passed over
(waiting./* table_name */table_name IS NULL
 OR waiting./* table_name */table_name COLLATE BINARY NOT IN (SELECT value FROM json_each(:unread)));

-- anything_waiting: finds one row that could be read now, from the index of waiting rows where there is one
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
LIMIT 1;

-- anything_beyond: finds one row above a number that could be read now, and is of no object that is passed over
SELECT 1 FROM /* log */event_log AS waiting
WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id > :beyond AND /* except */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
LIMIT 1;

-- late_numbers: numbers of rows in the gaps between those that were seen, each gap by the index
SELECT waiting./* record_id */record_id
FROM json_each(:gaps) AS gap
CROSS JOIN /* log */event_log AS waiting
  ON waiting./* record_id */record_id BETWEEN json_extract(gap.value, '$[0]') AND json_extract(gap.value, '$[1]')
WHERE waiting./* status */status = 'N' AND /* except */(1 = 1) AND /* unread */(1 = 1)
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = waiting./* record_id */record_id
                    AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
ORDER BY waiting./* record_id */record_id LIMIT :limit;

-- passed_runs: rows of objects that are passed over, as runs of numbers without gaps: of each object in a run its first and
-- last number. Between them lie rows of other objects that are passed over as well.
SELECT MIN(place.id), MAX(place.id), MIN(place.name), MIN(place.object)
FROM (SELECT found.id, found.name, found.object, found.id - ROW_NUMBER() OVER (ORDER BY found.id) AS island
      FROM (SELECT waiting./* record_id */record_id AS id, waiting./* table_name */table_name AS name,
                   waiting./* table_key */table_key AS object
            FROM /* log */event_log AS waiting
            WHERE waiting./* status */status = 'N'
              AND waiting./* record_id */record_id > :above AND waiting./* record_id */record_id <= :upto
              AND NOT /* except */(1 = 1)
            ORDER BY waiting./* record_id */record_id
            LIMIT :limit) AS found) AS place
GROUP BY place.island, place.name COLLATE BINARY, place.object COLLATE BINARY;

-- count_some: how many rows could be read now, counted up to a limit
SELECT COUNT(*) FROM (
    SELECT 1 FROM /* log */event_log AS waiting
    WHERE waiting./* status */status = 'N' AND /* among */(1 = 1)
      AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                      WHERE kept.record_id = waiting./* record_id */record_id
                        AND (kept.held <> 0 OR kept.next_attempt > /* now */CURRENT_TIMESTAMP))
    LIMIT :limit) AS found;

-- retried_rows: rows that were offered and not taken: their object, the attempts, the seconds to the next one
SELECT tried./* record_id */record_id, CAST(tried./* table_name */table_name AS text), CAST(tried./* table_key */table_key AS text),
       kept.attempts, (julianday(kept.next_attempt) - julianday(/* now */CURRENT_TIMESTAMP)) * 86400.0
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND tried./* status */status = 'N' AND kept.next_attempt IS NOT NULL;

-- held_rows: waiting rows that somebody holds, with their objects
SELECT tried./* record_id */record_id, CAST(tried./* table_name */table_name AS text), CAST(tried./* table_key */table_key AS text)
FROM /* log */event_log AS tried
JOIN /* outcomes */event_log_outcome AS kept ON kept.record_id = tried./* record_id */record_id
WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND tried./* status */status = 'N' AND kept.held <> 0;

-- still_waiting: which of these rows wait, held or not
SELECT tried./* record_id */record_id
FROM /* log */event_log AS tried
WHERE tried./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND tried./* status */status = 'N';

-- note_waiting: records why rows go on waiting that were read
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT waiting./* record_id */record_id, 'N', 'held', :note FROM /* log */event_log AS waiting
WHERE waiting./* record_id */record_id IN (SELECT value FROM json_each(:ids)) AND waiting./* status */status = 'N'
ON CONFLICT (record_id) DO UPDATE SET status = excluded.status, reason = excluded.reason, note = excluded.note;

-- note_behind: records of rows that nobody reads yet which row of their object they wait for;
-- only of those that have waited longest, for there may be very many
INSERT INTO /* outcomes */event_log_outcome (record_id, status, reason, note)
SELECT behind./* record_id */record_id, 'N', 'held',
       'row ' || min(ahead./* record_id */record_id) || ' of the same object comes first.'
FROM /* log */event_log AS ahead
JOIN (
      SELECT waiting./* record_id */record_id, waiting./* table_name */table_name, waiting./* table_key */table_key
      FROM /* log */event_log AS waiting
      WHERE waiting./* status */status = 'N'
      ORDER BY waiting./* record_id */record_id LIMIT :most
) AS behind
  ON behind./* table_name */table_name = ahead./* table_name */table_name
 AND behind./* table_key */table_key = ahead./* table_key */table_key
 AND behind./* record_id */record_id > ahead./* record_id */record_id
WHERE ahead./* record_id */record_id IN (SELECT value FROM json_each(:ids))
  AND ahead./* status */status = 'N'
  AND NOT EXISTS (SELECT 1 FROM /* outcomes */event_log_outcome AS kept
                  WHERE kept.record_id = behind./* record_id */record_id)
GROUP BY behind./* record_id */record_id
ON CONFLICT (record_id) DO NOTHING;

-- lock_mark: makes or replaces a mark if the lock is still ours; nobody else takes it before the commit
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_mark_soon: as `lock_mark`; every transaction is on disk before it returns
INSERT INTO /* marks */event_log_mark (name, value)
SELECT :name, :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- lock_take_in_hand: notes the batch in hand as `lock_mark_soon` does, unless rows were held or released meanwhile
INSERT INTO /* marks */event_log_mark (name, value)
SELECT 'in hand', :value
WHERE EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token)
  AND NOT EXISTS (SELECT 1 FROM /* marks */event_log_mark WHERE name = 'holding' AND value <> :holding)
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
