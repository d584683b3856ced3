-- Reading a log in bulk: ranges of it side by side, and following it as it grows.
-- Numbers stand in the text, because COPY takes no parameters.

-- extent: the first and the last number of the chosen rows
SELECT min(entry./* record_id */record_id), max(entry./* record_id */record_id)
FROM /* log */event_log entry WHERE /* chosen */(1 = 1);

-- chosen_count: how many rows are chosen
SELECT count(*) FROM /* log */event_log entry WHERE /* chosen */(1 = 1);

-- chosen_all: condition: every row
(1 = 1);

-- chosen_statuses: condition: rows with one of these statuses
(entry./* status */status IN /* statuses */('N'));

-- chosen_tables: condition: rows of these tables
(entry./* table_name */table_name IN /* names */('usr'));

-- chosen_first: condition: rows from a number on
(entry./* record_id */record_id >= /* number */1);

-- chosen_last: condition: rows up to a number
(entry./* record_id */record_id <= /* number */9);

-- transaction_told: column: the transaction that wrote the row, where the log has a column for it
, entry./* transaction_number */eventlog_transaction;

-- untold: column: nothing, in a log without a column for it
, NULL;

-- context_told: column: who the application said is behind the row, where the log has a column for it
, entry./* context_column */eventlog_context;

-- numbers_after: the numbers after a number, oldest first
SELECT entry./* record_id */record_id FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id > /* first */0 ORDER BY 1 LIMIT /* limit */1000;

-- numbers_within: the numbers of the rows of a row_range
SELECT entry./* record_id */record_id FROM /* log */event_log entry
WHERE entry./* record_id */record_id BETWEEN /* first */1 AND /* last */9 AND /* each_half */(1 = 1) ORDER BY 1;
