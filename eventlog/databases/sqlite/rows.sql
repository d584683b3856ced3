-- rows_by_key: columns of the rows that have the keys asked for, each with the number of its key; the keys as a list
WITH asked (/* names */n) AS (VALUES /* keys */(0))
SELECT /* columns */asked.n
FROM asked JOIN /* table */usr AS found ON /* match */(found.idu = asked.n)
ORDER BY /* order */asked.n;
