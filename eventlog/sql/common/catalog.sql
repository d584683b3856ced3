-- What the database's own catalog tells of tables and triggers.

-- try_condition: whether a condition can be asked of a table
SELECT COUNT(*) FROM /* target */usr WHERE /* condition */(1 = 1) AND 1 = 0;
