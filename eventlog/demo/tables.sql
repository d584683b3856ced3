-- The demo: three small tables.

CREATE TABLE person (id INTEGER PRIMARY KEY, name VARCHAR(64), mail VARCHAR(64), boss INTEGER REFERENCES person);
CREATE TABLE person_phone (id INTEGER NOT NULL REFERENCES person, number VARCHAR(32));
CREATE TABLE badge (code VARCHAR(16) PRIMARY KEY, colour VARCHAR(16), photo BLOB);
