-- A queue to try things on, in any database.

-- insert: one row, as the emulator writes it
INSERT INTO /* queue */DISPATCH_QUEUE (OPER_DATE, EXTDATA, DBNODE, TRANSACT_ID, SYSLOG_ADDR, TYP, BLOBATR, CHANNEL, TABNUM_SRC,
       ROWID_SRC, LEN1, LEN2, DST_SERVER, DST_OWNER, DST_TABLE, DATA)
VALUES (:OPER_DATE, :EXTDATA, :DBNODE, :TRANSACT_ID, :SYSLOG_ADDR, :TYP, :BLOBATR, :CHANNEL, :TABNUM_SRC,
        :ROWID_SRC, :LEN1, :LEN2, :DST_SERVER, :DST_OWNER, :DST_TABLE, :DATA);

-- create: the table as the emulator makes it; the type of binary columns is the database's own
CREATE TABLE /* queue */DISPATCH_QUEUE (
    OPER_DATE /* binary */BLOB,
    EXTDATA SMALLINT,
    DBNODE CHAR(8),
    TRANSACT_ID BIGINT,
    SYSLOG_ADDR BIGINT,
    TYP SMALLINT,
    BLOBATR SMALLINT,
    CHANNEL INT,
    TABNUM_SRC INT,
    ROWID_SRC INT,
    LEN1 INT,
    LEN2 INT,
    DST_SERVER CHAR(8),
    DST_OWNER CHAR(66),
    DST_TABLE CHAR(66),
    DATA /* binary */BLOB
);
