-- The tables of the tour: people, and their phones as a child table.
CREATE TABLE usr (idu integer PRIMARY KEY, fname varchar(64), lname varchar(64));
CREATE TABLE usr_phone (idu integer NOT NULL, phoneno varchar(32), FOREIGN KEY (idu) REFERENCES usr (idu) ON DELETE CASCADE);
