-- Lists read by the log's numbers, by the index of waiting rows, or else by rowid.

-- list_places: condition: a row_range of the table as it lies on the disk
(entry.rowid >= :first_place AND entry.rowid < :last_place);

-- list_end: where the table ends on the disk, and how many rows are looked through at once
SELECT coalesce(max(rowid), 0) + 1, 10000 FROM /* log */event_log;

-- list_bounds: two ends of a row_range on the disk as conditions have them
SELECT :first_place, :last_place;

-- list_since: condition: rows from a time on, by the clock of the log
(julianday(entry./* event_time */event_time) >= julianday(:since));
