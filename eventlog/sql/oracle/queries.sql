-- What the database is asked about itself; everything in this folder runs on Oracle 12.1.0.2 and newer.

-- clock: the database's own time, in the form that event_time has
SELECT CAST(SYS_EXTRACT_UTC(SYSTIMESTAMP) AS DATE) FROM dual;
