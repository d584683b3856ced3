-- What is asked of LINTER's queue. Only integers vary; they stand in the text, since drivers write parameters differently.

-- endings: rows that may end a transaction, after a place, in the order of the system log
SELECT OPER_DATE, EXTDATA, DBNODE, TRANSACT_ID, /* address */SYSLOG_ADDR, TYP, BLOBATR, CHANNEL, TABNUM_SRC, ROWID_SRC, LEN1, LEN2,
       DST_SERVER, DST_OWNER, DST_TABLE
  FROM /* queue */DISPATCH_QUEUE
 WHERE TYP IN (4, 5, 10) AND /* range */(SYSLOG_ADDR > 0)
 ORDER BY CASE WHEN /* address */SYSLOG_ADDR < 0 THEN 1 ELSE 0 END, /* address */SYSLOG_ADDR, EXTDATA;

-- transactions: all rows of some transactions up to a place, in the order of the system log
SELECT OPER_DATE, EXTDATA, DBNODE, TRANSACT_ID, /* address */SYSLOG_ADDR, TYP, BLOBATR, CHANNEL, TABNUM_SRC, ROWID_SRC, LEN1, LEN2,
       DST_SERVER, DST_OWNER, DST_TABLE, DATA
  FROM /* queue */DISPATCH_QUEUE
 WHERE TRANSACT_ID IN (/* numbers */0) AND /* range */(SYSLOG_ADDR > 0)
 ORDER BY CASE WHEN /* address */SYSLOG_ADDR < 0 THEN 1 ELSE 0 END, /* address */SYSLOG_ADDR, EXTDATA;

-- delete: the rows of one transaction up to its end
DELETE FROM /* queue */DISPATCH_QUEUE WHERE TRANSACT_ID IN (/* numbers */0) AND /* range */(SYSLOG_ADDR > 0);
