"""Applications that write while everything else fails: random transactions on tracked tables."""

from __future__ import annotations

import random
import time
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

TABLES = (
    "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), lname VARCHAR(40))",
    "CREATE TABLE item (shop VARCHAR(20) NOT NULL, number INTEGER NOT NULL, note VARCHAR(40), PRIMARY KEY (shop, number))",
)
VALUES = (None, "", "Jack", 'O\'Neil, "x"\\', "<&>]]>", "Ü+=;", " blank ", "\N{SNOWMAN}")
SHOPS = ("a", "b=c", 'q"+,', "x\\y")


def write(engine: Engine, dice: random.Random, pause: float) -> None:
    """Writes a transaction; what another writer was faster with is given up."""
    try:
        transaction(engine, dice, pause)
    except DBAPIError:  # a deadlock, a key that is there already, a database that is locked or away
        time.sleep(pause)


def transaction(engine: Engine, dice: random.Random, pause: float = 0.0) -> None:
    """A few changes; one in ten transactions is rolled back, some take their time."""
    with engine.connect() as connection:
        for _ in range(dice.randint(1, 4)):
            change(connection, dice)
            if dice.random() < 0.2:
                time.sleep(dice.random() * pause)
        if dice.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()
    time.sleep(dice.random() * pause)


def many_at_once(engine: Engine, dice: random.Random, count: int = 60) -> None:
    """Changes for several batches in one transaction, unless other writers are in the way."""
    with suppress(DBAPIError), engine.begin() as connection:
        for _ in range(count):
            change(connection, dice)


def change(connection: Connection, dice: random.Random) -> None:
    """Inserts, updates, deletes, or gives a row another key."""
    if dice.random() < 0.6:
        _usr(connection, dice, {"k": dice.randint(1, 12), "v": dice.choice(VALUES), "w": dice.choice(VALUES)})
    else:
        place = {"shop": dice.choice(SHOPS), "number": dice.randint(1, 4)}
        _item(connection, dice, {**place, "v": dice.choice(VALUES)})


def _usr(connection: Connection, dice: random.Random, values: dict[str, Any]) -> None:
    statements = (
        "INSERT INTO usr VALUES (:k, :v, :w) ON CONFLICT DO NOTHING",
        "UPDATE usr SET fname = :v WHERE idu = :k",
        "UPDATE usr SET fname = :v, lname = :w WHERE idu IN (:k, :k + 1)",
        "DELETE FROM usr WHERE idu = :k",
        "UPDATE usr SET idu = :k + 20 WHERE idu = :k AND NOT EXISTS (SELECT 1 FROM usr AS u WHERE u.idu = :k + 20)",
    )
    _execute(connection, dice.choices(statements, (5, 4, 2, 2, 1))[0], values)


def _item(connection: Connection, dice: random.Random, values: dict[str, Any]) -> None:
    statements = (
        "INSERT INTO item VALUES (:shop, :number, :v) ON CONFLICT DO NOTHING",
        "UPDATE item SET note = :v WHERE shop = :shop AND number = :number",
        "DELETE FROM item WHERE shop = :shop AND number = :number",
    )
    _execute(connection, dice.choices(statements, (3, 3, 1))[0], values)


def _execute(connection: Connection, sql: str, values: dict[str, Any]) -> None:
    connection.execute(text(sql), {name: value for name, value in values.items() if f":{name}" in sql})
