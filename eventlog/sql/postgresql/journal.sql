-- The journal: what takes lists.

-- parked_rows: the rows that wait of some objects, in their order
SELECT record_id, object, reason, attempts, due FROM /* parked */event_log_parked
WHERE output = :output AND object = ANY (ARRAY(SELECT json_array_elements_text(CAST(:objects AS json))))
ORDER BY record_id LIMIT :limit;

-- parked_objects: of which of these objects rows wait
SELECT DISTINCT object FROM /* parked */event_log_parked
WHERE output = :output AND object = ANY (ARRAY(SELECT json_array_elements_text(CAST(:objects AS json))));

-- parked_elsewhere: which of these rows wait for another output
SELECT DISTINCT record_id FROM /* parked */event_log_parked
WHERE output <> :output AND record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]));

-- held_among: which of these rows are held
SELECT record_id FROM /* holds */event_log_hold
WHERE record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]));

-- parked_stretches: where rows wait, roughly: the first and the last in each stretch of so many numbers
SELECT MIN(record_id), MAX(record_id), COUNT(DISTINCT record_id) FROM /* parked */event_log_parked
GROUP BY record_id / CAST(:width AS bigint) ORDER BY 1;

-- parked_make_many: rows of one object wait for the same reason
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT CAST(:output AS text), listed, CAST(:object AS text), CAST(:reason AS text), CAST(:note AS text),
       CAST(:attempts AS integer), CAST(:due AS bigint)
FROM unnest(CAST(translate(:ids, '[]', '{}') AS bigint[])) AS listed;

-- parked_drop_many: rows wait no longer
DELETE FROM /* parked */event_log_parked
WHERE output = :output AND record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]));
