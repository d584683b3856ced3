-- rows_by_key: columns of the rows that have the keys asked for, each with the number of its key; the keys as JSON
SELECT /* columns */asked.n
FROM JSON_TABLE(:keys, '$[*]' COLUMNS (n INTEGER PATH '$[0]'/* values */)) AS asked
     STRAIGHT_JOIN /* table */usr AS found ON /* match */(found.idu = asked.n)
ORDER BY /* order */asked.n;
