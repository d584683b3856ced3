-- The tables of the tour: people, and their phones as a child table. They and the log belong to the user of eventlog, and
-- whoever takes the tour changes rows as another one: a publisher passes over what its own user has written.
CREATE ROLE eventlog LOGIN PASSWORD 'tour';
ALTER DATABASE app OWNER TO eventlog;
SET ROLE eventlog;
CREATE TABLE usr (idu integer PRIMARY KEY, fname varchar(64), lname varchar(64));
CREATE TABLE usr_phone (idu integer NOT NULL REFERENCES usr ON DELETE CASCADE, phoneno varchar(32));
