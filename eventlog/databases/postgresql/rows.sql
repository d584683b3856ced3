-- column_stamps: for each of the tables asked for, by its place in the list, a text that changes whenever its columns do
SELECT told.place, md5(string_agg(concat_ws(' ', attnum, attname, atttypid, atttypmod, attisdropped), ',' ORDER BY attnum))
FROM json_array_elements(CAST(:tables AS json)) WITH ORDINALITY AS told (entry, place)
JOIN pg_namespace ON nspname = coalesce(entry ->> 0, current_schema())
JOIN pg_class ON relnamespace = pg_namespace.oid AND relname = entry ->> 1
JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0
GROUP BY told.place;

-- rows_by_key: columns of the rows that have the keys asked for, each with the number of its key; one array a key column
SELECT /* columns */asked.n
FROM unnest(/* arrays */(ARRAY[0])) AS asked (/* names */n)
JOIN /* table */usr AS found ON /* match */(found.idu = asked.n)
ORDER BY /* order */asked.n;
