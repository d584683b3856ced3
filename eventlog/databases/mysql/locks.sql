-- Locks on tables, and who has them.

-- table_holders: open transactions, the oldest first: which table each has the server tells nobody; one of them keeps
-- others from what a statement needs
SELECT CONCAT('connection ', entry.trx_mysql_thread_id, ' of ', COALESCE(session.user, '?'), ', with a transaction open for ',
              TIMESTAMPDIFF(SECOND, entry.trx_started, NOW()), ' s')
FROM information_schema.innodb_trx AS entry
LEFT JOIN information_schema.processlist AS session ON session.id = entry.trx_mysql_thread_id
WHERE entry.trx_mysql_thread_id <> CONNECTION_ID() AND COALESCE(:needing, '') IS NOT NULL
ORDER BY entry.trx_started;
