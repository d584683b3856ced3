-- Reading a log in bulk: stretches of it side by side, and following it as it grows.
-- Numbers stand in the text, because COPY takes no parameters.

-- extent: the first and the last number of the chosen rows
SELECT min(entry./* record_id */record_id), max(entry./* record_id */record_id)
FROM /* log */event_log AS entry WHERE /* chosen */(1 = 1);

-- chosen_count: how many rows are chosen
SELECT count(*) FROM /* log */event_log AS entry WHERE /* chosen */(1 = 1);

-- chosen_all: condition: every row
(1 = 1);

-- chosen_letters: condition: rows with one of these letters
(entry./* status */status IN /* letters */('N'));

-- numbers_after: the numbers after a number, oldest first
SELECT entry./* record_id */record_id FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id > /* first */0 ORDER BY 1 LIMIT /* limit */1000;

-- numbers_within: the numbers of the rows of a stretch
SELECT entry./* record_id */record_id FROM /* log */event_log AS entry
WHERE entry./* record_id */record_id BETWEEN /* first */1 AND /* last */9 ORDER BY 1;
