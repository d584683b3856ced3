-- The journal: what takes lists.

-- parked_rows: the rows that wait of some objects, in their order. Of each object no more are read than are wanted:
-- a million may wait. The object stands between two bounds that are the same: by an equation the server would go by its
-- statistics, and read all that waits for each object of which nothing does, where nearly all of it is of one other object.
SELECT kept.record_id, kept.object, kept.reason, kept.attempts, kept.due
FROM json_array_elements_text(CAST(:objects AS json)) AS listed (object)
CROSS JOIN LATERAL (SELECT * FROM /* parked */event_log_parked AS waiting
                    WHERE waiting.output = :output
                      AND waiting.object >= listed.object AND waiting.object <= listed.object
                    ORDER BY waiting.object, waiting.record_id LIMIT :limit) AS kept
ORDER BY kept.record_id LIMIT :limit;

-- parked_first: the first row that waits of each of these objects
SELECT kept.record_id, kept.due
FROM json_array_elements_text(CAST(:objects AS json)) AS listed (object)
CROSS JOIN LATERAL (SELECT waiting.record_id, waiting.due FROM /* parked */event_log_parked AS waiting
                    WHERE waiting.output = :output
                      AND waiting.object >= listed.object AND waiting.object <= listed.object
                    ORDER BY waiting.object, waiting.record_id LIMIT 1) AS kept;

-- parked_objects: of which of these objects rows wait
SELECT listed.object
FROM json_array_elements_text(CAST(:objects AS json)) AS listed (object)
CROSS JOIN LATERAL (SELECT 1 FROM /* parked */event_log_parked AS waiting
                    WHERE waiting.output = :output
                      AND waiting.object >= listed.object AND waiting.object <= listed.object
                    ORDER BY waiting.object, waiting.record_id LIMIT 1) AS kept;

-- association_read: what a receiver calls these objects
SELECT kept.object, kept.whole_name, kept.association, kept.awaiting, kept.is_over
FROM /* associations */event_log_association AS kept
WHERE kept.output = :output
  AND kept.object = ANY (ARRAY(SELECT json_array_elements_text(CAST(:objects AS json))));

-- parked_elsewhere: which of these rows wait for another output
SELECT DISTINCT record_id FROM /* parked */event_log_parked
WHERE output <> :output AND record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]));

-- parked_transactions: of which of these transactions rows between two numbers wait for an output, but for these rows; and
-- when their objects may go
SELECT kept.source_transaction, (SELECT MIN(leader.due) FROM /* parked */event_log_parked AS leader
                                 WHERE leader.output = :output AND leader.object = kept.object)
FROM (SELECT DISTINCT waiting.object, entry./* transaction_number */eventlog_transaction AS source_transaction
      FROM /* parked */event_log_parked AS waiting
      JOIN /* log */event_log AS entry ON entry./* record_id */record_id = waiting.record_id AND entry./* status */status = 'N'
      WHERE waiting.output = :output AND waiting.record_id BETWEEN :first AND :last
        AND waiting.record_id <> ALL (CAST(translate(:ids, '[]', '{}') AS bigint[]))
        AND entry./* transaction_number */eventlog_transaction = ANY (CAST(translate(:transactions, '[]', '{}') AS bigint[]))
     ) AS kept;

-- parked_among: which of these rows wait for any output
SELECT DISTINCT record_id FROM /* parked */event_log_parked
WHERE record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]));

-- held_among: which of these rows are held
SELECT record_id FROM /* holds */event_log_hold
WHERE record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]));

-- parked_make_many: rows of one object wait for the same reason
INSERT INTO /* parked */event_log_parked (output, record_id, object, reason, note, attempts, due)
SELECT CAST(:output AS text), listed, CAST(:object AS text), CAST(:reason AS text), CAST(:note AS text),
       CAST(:attempts AS integer), CAST(:due AS bigint)
FROM unnest(CAST(translate(:ids, '[]', '{}') AS bigint[])) AS listed;

-- parked_drop_many: rows wait no longer. As a list the numbers would be compared with each row of the output, until
-- somebody has gathered statistics: 4 s for 10,000 rows.
DELETE FROM /* parked */event_log_parked
WHERE output = :output AND record_id IN (SELECT unnest(CAST(translate(:ids, '[]', '{}') AS bigint[])));

-- journal_enter: waits for who writes the journal, and renews the lease if the lock is still ours; says how often holds
-- have changed, and what the last transaction of the journal has written here. The lease is locked last: it is written to
-- when the other rows are at hand. With :soon the transaction is on disk only with the next one.
WITH held AS MATERIALIZED (SELECT value FROM /* marks */event_log_mark WHERE name = 'holding' FOR UPDATE),
     noted AS (UPDATE /* marks */event_log_mark AS kept SET value = CAST(:written AS text)
               FROM held, /* marks */event_log_mark AS former
               WHERE kept.name = 'written' AND former.name = 'written'
               RETURNING held.value AS holding, former.value AS former)
UPDATE /* marks */event_log_mark AS lease
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
FROM noted, set_config('synchronous_commit', CASE WHEN :soon THEN 'off' ELSE /* durable */'on' END, true)
WHERE lease.name = 'publisher' AND lease.value LIKE '% ' || CAST(:token AS text)
RETURNING noted.holding, noted.former;

-- plan_at_once: plans documents that stand in one row. Does all of a transaction, and finds 1; or does nothing where
-- `journal_enter` would find another one to have the lock, or `holding` or `written` to be other than memory knows of.
WITH held AS MATERIALIZED (SELECT value FROM /* marks */event_log_mark WHERE name = 'holding' FOR UPDATE),
     lease AS MATERIALIZED (SELECT 1 FROM held, /* marks */event_log_mark AS kept
                            WHERE held.value = CAST(:holding AS text)
                              AND COALESCE(CAST(:history AS bigint) =
                                           (SELECT COUNT(*) + (SELECT COUNT(*) FROM /* seen */event_log_seen)
                                            FROM /* history */event_log_schema), true)
                              AND kept.name = 'publisher' AND kept.value LIKE '% ' || CAST(:token AS text)
                            FOR UPDATE OF kept),
     noted AS (UPDATE /* marks */event_log_mark AS kept SET value = CAST(:written AS text)
               FROM lease, set_config('synchronous_commit', /* durable */'on', true)
               WHERE kept.name = 'written' AND kept.value = CAST(:former AS text) RETURNING 1),
     renewed AS (UPDATE /* marks */event_log_mark AS kept
                 SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
                 FROM noted WHERE kept.name = 'publisher'),
     made AS (INSERT INTO /* planned */event_log_planned
                (output, plan, place, documents, records, details, objects, covers, body, route, attempts, due)
              SELECT CAST(:output AS text), CAST(:plan AS text), CAST(:place AS integer), CAST(:documents AS integer),
                     CAST(:records AS text), CAST(:details AS text), CAST(:objects AS text), CAST(:covers AS text),
                     CAST(:body AS text), CAST(:route AS text), CAST(:attempts AS integer), 0
              FROM noted),
     moved AS (UPDATE /* outputs */event_log_output AS kept
               SET position = CAST(:position AS bigint), plans = CAST(:plans AS bigint), plan = CAST(:plan AS text),
                   target_plan = CAST(:target_plan AS text), transactions = CAST(:transactions AS text),
                   warning = CAST(:warning AS text),
                   recent = CAST(:recent AS text), restored = CAST(:restored AS bigint)
               FROM noted WHERE kept.name = CAST(:output AS text))
SELECT 1 FROM noted;

-- done_at_once: what was planned is over, and its rows were published; on disk with the next transaction. As
-- `plan_at_once` all of a transaction, or nothing.
WITH held AS MATERIALIZED (SELECT value FROM /* marks */event_log_mark WHERE name = 'holding' FOR UPDATE),
     lease AS MATERIALIZED (SELECT 1 FROM held, /* marks */event_log_mark AS kept
                            WHERE held.value = CAST(:holding AS text)
                              AND kept.name = 'publisher' AND kept.value LIKE '% ' || CAST(:token AS text)
                            FOR UPDATE OF kept),
     noted AS (UPDATE /* marks */event_log_mark AS kept SET value = CAST(:written AS text)
               FROM lease, set_config('synchronous_commit', 'off', true)
               WHERE kept.name = 'written' AND kept.value = CAST(:former AS text) RETURNING 1),
     renewed AS (UPDATE /* marks */event_log_mark AS kept
                 SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || CAST(:token AS text)
                 FROM noted WHERE kept.name = 'publisher'),
     dropped AS (DELETE FROM /* planned */event_log_planned AS kept USING noted
                 WHERE kept.output = CAST(:output AS text) AND kept.plan = CAST(:plan AS text)
                   AND kept.place = CAST(:place AS integer)),
     marked AS (UPDATE /* log */event_log AS entry SET /* status */status = 'S' FROM noted
                WHERE entry./* record_id */record_id = ANY (CAST(translate(:ids, '[]', '{}') AS bigint[]))
                  AND entry./* status */status = 'N')
SELECT 1 FROM noted;

-- durable: expression: how a commit waits for the disk: as the session says, but never for less than that, nor for this
-- server alone where others are to have what it acknowledges
CASE WHEN current_setting('synchronous_commit') = 'off'
       OR (current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> '')
     THEN 'on' ELSE current_setting('synchronous_commit') END;

-- durably: expression: has this transaction be on disk when its commit returns, in a statement that is asked anyway
set_config('synchronous_commit', /* durable */'on', true);

-- make_durable: the same in a statement of its own
SELECT set_config('synchronous_commit', /* durable */'on', true);
