-- rows_by_key: columns of the rows that have the keys asked for, each with the number of its key; the keys as JSON
SELECT /* columns */asked.n
FROM JSON_TABLE(:keys, '$[*]' COLUMNS /* names */(n NUMBER PATH '$[0]')) asked
JOIN /* table */usr found ON /* match */(found.idu = asked.n)
ORDER BY /* order */asked.n;
