-- The demo: somebody works with the data.

INSERT INTO person VALUES (1, 'Jack Frost', 'jack@example.org', NULL), (2, 'Ida Lee', NULL, 1);
INSERT INTO person_phone VALUES (2, '555-1111'), (2, '555-2222');
UPDATE person SET mail = 'ida@example.org' WHERE id = 2;
INSERT INTO badge VALUES ('a+b', 'red', X'AAAA');
UPDATE badge SET colour = 'green' WHERE code = 'a+b';
INSERT INTO person VALUES (3, 'Nobody for long', NULL, NULL);
DELETE FROM person WHERE id = 3;
