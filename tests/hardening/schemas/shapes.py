"""The schemas: a record shop, a trader, a film library. Their shapes are those that people know; names and rows are ours.

What they have between them: m:n tables that are all key, two foreign keys to one parent, trees, keys of several columns
that hold foreign keys, two tables that refer to each other, child tables, actions of every kind, partitions, enums,
domains, arrays, composite types, generated columns, deferrable keys, old dates.
"""

from __future__ import annotations

import re
from typing import Final

_actions = re.compile(r" ON DELETE (CASCADE|SET NULL)( ON UPDATE CASCADE)?(?=[,)\n])")

SHOP: Final = (
    "CREATE TABLE artist (artist_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(60))",
    """CREATE TABLE album (album_id INTEGER NOT NULL PRIMARY KEY, title VARCHAR(60) NOT NULL, artist_id INTEGER NOT NULL,
       FOREIGN KEY (artist_id) REFERENCES artist (artist_id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE genre (genre_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(60))",
    """CREATE TABLE track (track_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(60), album_id INTEGER, genre_id INTEGER,
       price NUMERIC(8, 2), FOREIGN KEY (album_id) REFERENCES album (album_id) ON DELETE SET NULL ON UPDATE CASCADE,
       FOREIGN KEY (genre_id) REFERENCES genre (genre_id) ON DELETE SET NULL ON UPDATE CASCADE)""",
    "CREATE TABLE playlist (playlist_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(60))",
    """CREATE TABLE playlist_track (playlist_id INTEGER NOT NULL, track_id INTEGER NOT NULL,
       PRIMARY KEY (playlist_id, track_id),
       FOREIGN KEY (playlist_id) REFERENCES playlist (playlist_id) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (track_id) REFERENCES track (track_id) ON DELETE CASCADE ON UPDATE CASCADE)""",
)
"""A record shop."""

TRADER: Final = (
    """CREATE TABLE employee (employee_id INTEGER NOT NULL PRIMARY KEY, last_name VARCHAR(60) NOT NULL, birth_date DATE,
       reports_to INTEGER,
       FOREIGN KEY (reports_to) REFERENCES employee (employee_id) ON DELETE SET NULL ON UPDATE CASCADE)""",
    "CREATE TABLE region (region_id INTEGER NOT NULL PRIMARY KEY, described VARCHAR(60))",
    """CREATE TABLE territory (territory_id VARCHAR(20) NOT NULL PRIMARY KEY, region_id INTEGER NOT NULL,
       FOREIGN KEY (region_id) REFERENCES region (region_id) ON DELETE CASCADE)""",
    """CREATE TABLE employee_territory (employee_id INTEGER NOT NULL, territory_id VARCHAR(20) NOT NULL,
       PRIMARY KEY (employee_id, territory_id),
       FOREIGN KEY (employee_id) REFERENCES employee (employee_id) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (territory_id) REFERENCES territory (territory_id) ON DELETE CASCADE)""",
    """CREATE TABLE customer (code VARCHAR(20) NOT NULL PRIMARY KEY, company VARCHAR(60), city VARCHAR(60))""",
    """CREATE TABLE customer_phone (code VARCHAR(20) NOT NULL, phone VARCHAR(60) NOT NULL, UNIQUE (code, phone),
       FOREIGN KEY (code) REFERENCES customer (code) ON DELETE CASCADE)""",
    """CREATE TABLE orders (order_id INTEGER NOT NULL PRIMARY KEY, code VARCHAR(20), taken_by INTEGER, checked_by INTEGER,
       shipped DATE, FOREIGN KEY (code) REFERENCES customer (code) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (taken_by) REFERENCES employee (employee_id) ON DELETE SET NULL ON UPDATE CASCADE,
       FOREIGN KEY (checked_by) REFERENCES employee (employee_id) ON DELETE SET NULL ON UPDATE CASCADE)""",
    """CREATE TABLE order_line (order_id INTEGER NOT NULL, line INTEGER NOT NULL, product VARCHAR(60), quantity INTEGER,
       PRIMARY KEY (order_id, line), FOREIGN KEY (order_id) REFERENCES orders (order_id) ON DELETE CASCADE ON UPDATE CASCADE)""",
)
"""A trader."""

LIBRARY: Final = (
    "CREATE TABLE language (language_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))",
    """CREATE TABLE film (film_id INTEGER NOT NULL PRIMARY KEY, title VARCHAR(60) NOT NULL, language_id INTEGER,
       original_language_id INTEGER, length INTEGER, rate NUMERIC(4, 2),
       FOREIGN KEY (language_id) REFERENCES language (language_id) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (original_language_id) REFERENCES language (language_id) ON DELETE SET NULL ON UPDATE CASCADE)""",
    "CREATE TABLE actor (actor_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(60))",
    """CREATE TABLE film_actor (actor_id INTEGER NOT NULL, film_id INTEGER NOT NULL, PRIMARY KEY (actor_id, film_id),
       FOREIGN KEY (actor_id) REFERENCES actor (actor_id) ON DELETE CASCADE ON UPDATE CASCADE,
       FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE store (store_id INTEGER NOT NULL PRIMARY KEY, manager_id INTEGER, town VARCHAR(60))",
    """CREATE TABLE staff (staff_id INTEGER NOT NULL PRIMARY KEY, name VARCHAR(60), store_id INTEGER,
       FOREIGN KEY (store_id) REFERENCES store (store_id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    """CREATE TABLE film_word (film_id INTEGER NOT NULL, word VARCHAR(20),
       FOREIGN KEY (film_id) REFERENCES film (film_id) ON DELETE CASCADE ON UPDATE CASCADE)""",
)
"""A film library."""

ROUND = (
    "ALTER TABLE store ADD FOREIGN KEY (manager_id) REFERENCES staff (staff_id) ON DELETE SET NULL ON UPDATE CASCADE"
)
"""Makes store and staff refer to each other, where ALTER TABLE can."""

POSTGRESQL: Final = (
    ROUND,
    "CREATE TYPE rating AS ENUM ('G', 'PG', 'R')",
    "CREATE DOMAIN year AS INTEGER CHECK (VALUE BETWEEN 1901 AND 2155)",
    "CREATE TYPE place AS (town TEXT, street TEXT)",
    "ALTER TABLE film ADD rating rating, ADD released year, ADD features TEXT[], ADD made_at place",
    "ALTER TABLE film ADD double_length INTEGER GENERATED ALWAYS AS (length * 2) STORED",
    """CREATE TABLE payment (payment_id INTEGER NOT NULL, paid DATE NOT NULL, amount NUMERIC(8, 2), staff_id INTEGER,
       PRIMARY KEY (payment_id, paid), FOREIGN KEY (staff_id) REFERENCES staff (staff_id) ON DELETE SET NULL ON UPDATE CASCADE)
       PARTITION BY RANGE (paid)""",
    "CREATE TABLE payment_old PARTITION OF payment FOR VALUES FROM (MINVALUE) TO ('1990-01-01')",
    "CREATE TABLE payment_new PARTITION OF payment FOR VALUES FROM ('1990-01-01') TO (MAXVALUE)",
    """CREATE TABLE seat (seat_id INTEGER NOT NULL, row_name VARCHAR(20), taken BOOLEAN,
       PRIMARY KEY (seat_id) DEFERRABLE INITIALLY DEFERRED)""",
    """CREATE TABLE ticket (ticket_id INTEGER NOT NULL, row_name VARCHAR(20),
       PRIMARY KEY (ticket_id) DEFERRABLE INITIALLY DEFERRED) PARTITION BY RANGE (ticket_id)""",
    "CREATE TABLE ticket_low PARTITION OF ticket FOR VALUES FROM (MINVALUE) TO (4)",
    "CREATE TABLE ticket_high PARTITION OF ticket FOR VALUES FROM (4) TO (MAXVALUE)",
    "CREATE TABLE wish (wish_id INTEGER NOT NULL PRIMARY KEY, text VARCHAR(20))",
    """CREATE TABLE wish_tag (wish_id INTEGER NOT NULL, tag VARCHAR(20), UNIQUE (wish_id, tag),
       FOREIGN KEY (wish_id) REFERENCES wish (wish_id) DEFERRABLE INITIALLY DEFERRED)""",
    """CREATE TABLE valid (item INTEGER NOT NULL, version INTEGER NOT NULL, note VARCHAR(60), bytes BYTEA, told JSONB, one UUID,
       PRIMARY KEY (item, version))""",
    """CREATE TABLE typed (typed_id INTEGER NOT NULL PRIMARY KEY, big BIGINT, ratio DOUBLE PRECISION, made TIMESTAMP,
       moment TIMESTAMPTZ, clock TIME, letters CHAR(3))""",
)
"""What only PostgreSQL has."""

VIRTUAL: Final = "ALTER TABLE film ADD next_length INTEGER GENERATED ALWAYS AS (length + 1) VIRTUAL"
"""A column that is worked out when it is read: on PostgreSQL since 18."""

MYSQL: Final = (
    ROUND.partition(" ON DELETE")[0],
    "ALTER TABLE film ADD rating ENUM('G', 'PG', 'R'), ADD features SET('a', 'b', 'c'), ADD released YEAR",
    "ALTER TABLE film ADD double_length INTEGER GENERATED ALWAYS AS (length * 2) STORED",
    VIRTUAL,
    """CREATE TABLE payment (payment_id INTEGER NOT NULL, paid DATE NOT NULL, amount NUMERIC(8, 2),
       PRIMARY KEY (payment_id, paid)) PARTITION BY RANGE COLUMNS (paid)
       (PARTITION old VALUES LESS THAN ('1990-01-01'), PARTITION new VALUES LESS THAN (MAXVALUE))""",
    """CREATE TABLE valid (item INTEGER NOT NULL, version INTEGER NOT NULL, note VARCHAR(60), bytes BLOB, told JSON,
       PRIMARY KEY (item, version))""",
    """CREATE TABLE typed (typed_id INTEGER NOT NULL PRIMARY KEY, big BIGINT UNSIGNED, ratio DOUBLE, made DATETIME(6),
       clock TIME(6), yes TINYINT(1), letters CHAR(3))""",
)
"""What only MariaDB and MySQL have."""


def schema(database: str, version: tuple[int | str, ...]) -> tuple[str, ...]:
    """The statements that make all of it in a database.

    Where foreign keys fire no triggers they do nothing, but that a customer's phones go with the customer.
    """
    common = (*SHOP, *TRADER, *LIBRARY)
    if database == "postgresql":
        return (*common, *POSTGRESQL, *([VIRTUAL] if int(version[0]) >= 18 else []))
    if database == "sqlite":
        return common
    kept = [one if "customer_phone" in one else _actions.sub("", one) for one in common]
    return (*kept, *MYSQL)
