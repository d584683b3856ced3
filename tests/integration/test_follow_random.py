"""Columns come, go, and change name and type at random under writers: what a publisher that follows leaves open is one poll.

With an event trigger nothing is left open. Without its clock: between two polls anything may happen, and after each of them nothing may be lost and no writer fail.
"""

from __future__ import annotations

import random
from threading import Event, Thread

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track
from eventlog.capture.install import install
from tests.support.logged import logged, run

STEPS = 8
TYPES = ("VARCHAR(40)", "VARCHAR(80)", "TEXT")


class Table:
    """A table whose columns change at random; `secret` is never to be captured."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.engine = engine
        self.random = random.Random(seed)
        self.columns = ["a0", "a1", "a2"]
        self.number = 3
        columns = ", ".join(f"{name} VARCHAR(40)" for name in (*self.columns, "secret"))
        run(engine, f"CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, {columns})")
        run(engine, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO usr (idu) VALUES (2)")

    def change(self) -> dict[str, list[str]]:
        """Runs one ALTER TABLE, and tells what the journal is to say of it."""
        kinds = ["add", "rename", "retype", *(["drop"] if len(self.columns) > 1 else [])]
        kind, name = self.random.choice(kinds), self.random.choice(self.columns)
        if kind == "add":
            run(self.engine, f"ALTER TABLE usr ADD COLUMN {self._new()} VARCHAR(40)")
            return {"added": self.columns[-1:]}
        if kind == "drop":
            self.columns.remove(name)
            run(self.engine, f"ALTER TABLE usr DROP COLUMN {name}")
            return {"gone": [name]}
        if kind == "rename":
            self.columns.remove(name)
            run(self.engine, f"ALTER TABLE usr RENAME COLUMN {name} TO {self._new()}")
            return {"added": self.columns[-1:], "gone": [name]}
        how = "ALTER COLUMN {} TYPE {}" if self.engine.dialect.name == "postgresql" else "MODIFY COLUMN {} {}"
        run(self.engine, f"ALTER TABLE usr {how.format(name, self.random.choice(TYPES))}")
        return {"retyped": [name]}

    def _new(self) -> str:
        self.columns.append(f"a{self.number}")
        self.number += 1
        return self.columns[-1]


class Writer(Thread):
    """Writes to another row of the table all the time, whatever happens to it; counts how often that failed."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(daemon=True)
        self.engine = engine
        self.ended = Event()
        self.written = self.failed = 0

    def run(self) -> None:
        while not self.ended.wait(0.01):
            try:
                with self.engine.begin() as connection:
                    connection.execute(
                        text("UPDATE usr SET secret = :value WHERE idu = 2"), {"value": str(self.written)}
                    )
                self.written += 1
            except DBAPIError:
                self.failed += 1


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_with_an_event_trigger_nothing_is_lost_and_no_writer_fails(postgresql: Engine, style: Style) -> None:
    """Nobody polls, and nobody tracks anew: each change is logged right after the ALTER TABLE, and in every moment of it."""
    install(postgresql)
    seed = random.SystemRandom().randrange(10**6)
    table = Table(postgresql, seed)
    track(postgresql, ["usr"], TriggerOptions(style=style, exclude=("secret",), follow_ddl=True))
    writer = Writer(postgresql)
    writer.start()
    try:
        for step in range(STEPS):
            table.change()
            for column in table.columns:
                before = told_of_first(postgresql)
                run(postgresql, f"UPDATE usr SET {column} = '{step} {column}' WHERE idu = 1")
                assert told_of_first(postgresql) == before + 1, f"seed {seed}, step {step}, {column}"
    finally:
        writer.ended.set()
        writer.join()
    assert (writer.failed, writer.written > 0) == (0, True), f"seed {seed}"
    assert "secret" not in {row[2] for row in logged(postgresql)}
    assert {one.state for one in track(postgresql, ["usr"])} == {TriggerCondition.CURRENT}


def told_of_first(engine: Engine) -> int:
    """How many rows of the log are about the row that only the test writes to."""
    return sum(row[1] == "idu=1" for row in logged(engine))
