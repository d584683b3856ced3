-- rows_by_key: columns of the rows that have the keys asked for, each with the number of its key; one array a key column
SELECT /* columns */asked.n
FROM unnest(/* arrays */(ARRAY[0])) AS asked (/* names */n)
JOIN /* table */usr AS found ON /* match */(found.idu = asked.n)
ORDER BY /* order */asked.n;
