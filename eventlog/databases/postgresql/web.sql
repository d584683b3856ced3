-- Lists read by the two indexes of the log, of its waiting rows and of its processed ones, or by one of all numbers, or
-- else by the pages of the table.

-- list_low: where a row_range of so many rows before a number begins, and how many rows it has
SELECT min(n), count(*) FROM (
    SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
    WHERE /* among */(1 = 1) AND entry./* record_id */record_id < CAST(:before AS bigint)
    ORDER BY entry./* record_id */record_id DESC LIMIT :reach
) AS row_range;

-- list_low_of_all: the same of all rows; each half is read from the end of its index, and no more of it than is asked for
SELECT min(n), count(*) FROM (
    SELECT n FROM (
        (SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
         WHERE entry./* status */status = 'N' AND entry./* record_id */record_id < CAST(:before AS bigint)
         ORDER BY entry./* record_id */record_id DESC LIMIT :reach)
        UNION ALL
        (SELECT entry./* record_id */record_id AS n FROM /* log */event_log AS entry
         WHERE entry./* status */status IS DISTINCT FROM 'N' AND entry./* record_id */record_id < CAST(:before AS bigint)
         ORDER BY entry./* record_id */record_id DESC LIMIT :reach)
    ) AS halves
    ORDER BY n DESC LIMIT :reach
) AS row_range;

-- list_numbers: condition: a row_range of numbers
(entry./* record_id */record_id >= CAST(:low AS bigint));

-- list_halves: the rows of a row_range of numbers, each half by its index; joined so, they come in order without being sorted
(SELECT * FROM /* log */event_log AS waiting
 WHERE waiting./* status */status = 'N' AND waiting./* record_id */record_id >= CAST(:low AS bigint)
 UNION ALL
 SELECT * FROM /* log */event_log AS done
 WHERE done./* status */status IS DISTINCT FROM 'N' AND done./* record_id */record_id >= CAST(:low AS bigint));

-- list_waiting_numbers: condition: the waiting rows of a row_range of numbers
(entry./* status */status = 'N' AND entry./* record_id */record_id >= CAST(:low AS bigint));

-- list_places: condition: a row_range of the table as it lies on the disk
(entry.ctid >= CAST(:first_place AS tid) AND entry.ctid < CAST(:last_place AS tid));

-- list_end: where the table ends on the disk, in pages, and how many of them are looked through at once
SELECT greatest(pg_relation_size(CAST(CAST(:log AS text) AS regclass)), max(pg_relation_size(relid)))
       / CAST(current_setting('block_size') AS bigint), 512
FROM pg_partition_tree(CAST(CAST(:log AS text) AS regclass));

-- list_bounds: two ends of a row_range on the disk as conditions have them
SELECT '(' || CAST(:first_place AS bigint) || ',0)', '(' || CAST(:last_place AS bigint) || ',0)';

-- list_since: condition: rows from a time on, by the clock of the log
(entry./* event_time */event_time >= CAST(:since AS timestamp));
