-- One publisher a log, and what it must know between two turns: who holds the lock, and which rows wait.

-- marks_read: every mark that a publisher may have to know; proofs are none of them
SELECT name, value FROM /* marks */event_log_mark WHERE name <> 'verified';

-- lock_keep: renews the lease if the lock is still ours; nobody else changes the mark before the commit
UPDATE /* marks */event_log_mark
SET value = /* until */'2026-11-21T02:00:45.123' || ' ' || :token
WHERE name = 'publisher' AND value LIKE '% ' || :token;

-- lock_leave: says that nobody publishes any more
DELETE FROM /* marks */event_log_mark WHERE name = 'publisher' AND value LIKE '% ' || :token;
