"""Writers that give objects versions 1 to n, and note in the ledger what they have committed.

Each writer has objects of its own, so that it knows their versions without asking. What became of a transaction whose
connection broke while it was committed is asked of a table in which each transaction leaves its number.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event as Flag
from threading import Lock, Thread
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from tests.hardening.ledger.book import Ledger, Op, Place, Version
from tests.hardening.ledger.checking import FIELDS, IMAGES, READ_BACK, TRACKED
from tests.support.who import leave, say

TABLES: Final = (
    *[
        f"CREATE TABLE {table} (id INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL, note VARCHAR(80) NOT NULL)"
        for table in TRACKED
    ],
    "CREATE TABLE finished (number VARCHAR(40) NOT NULL PRIMARY KEY)",
)
STATEMENTS: Final[dict[Op, str]] = {
    "I": "INSERT INTO {table} (id, version, note) VALUES (:id, :number, :text)",
    "U": "UPDATE {table} SET version = :number, note = :text WHERE id = :id",
    "D": "DELETE FROM {table} WHERE id = :id",
}
LATER: Final = {
    "postgresql": "event_time + INTERVAL '2 seconds'",
    "sqlite": "strftime('%Y-%m-%d %H:%M:%f', event_time, '+2 seconds')",
    "mysql": "event_time + INTERVAL 2 SECOND",
}
SPAN: Final = 1_000_000
"""Keys of a writer."""

LETTERS: Final = "abc <&>\"'\\Ü\N{SNOWMAN}"


class Writer:
    """Writes to its own objects. `state` is what they are now: their last version, and whether they are there."""

    def __init__(self, engine: Engine, ledger: Ledger, number: int, seed: int) -> None:
        self.engine = engine
        self.ledger = ledger
        self.number = number
        self.dice = random.Random(f"{seed}.{number}")
        self.state: dict[Place, tuple[int, bool]] = {}
        self._lock = Lock()
        self._transactions = 0
        self._keys = number * SPAN

    def small(self, objects: int = 12, held: float = 0.0) -> None:
        """A few changes of the first objects; one in eight is rolled back, `held` seconds go by before the end."""
        versions = [self._next(self._some(objects)) for _ in range(self.dice.randint(1, 5))]
        self._write(versions, held=held, undone=self.dice.random() < 0.125)

    def big(self, objects: int, times: int = 3) -> None:
        """One transaction that gives many new objects so many versions each, round after round."""
        places = [self._new((READ_BACK, IMAGES, FIELDS, FIELDS, FIELDS)[n % 5]) for n in range(objects)]
        self._write([self._next(place, alive=True) for _ in range(times) for place in places])

    def future(self, objects: int = 2) -> None:
        """New objects whose rows are to be published later; nobody writes to them again."""
        places = [self._new(FIELDS) for _ in range(objects)]
        versions = [self._next(place, alive=True) for _ in range(2) for place in places]
        later = text(
            f"UPDATE event_log SET event_time = {LATER[self.engine.dialect.name]} "
            "WHERE table_name = :table AND table_key = :key"
        )

        def put_off(connection: Connection) -> None:
            for place in places:
                connection.execute(later, {"table": place[0], "key": f"id={place[1]}"})

        self._write(versions, then=put_off)

    def _write(
        self,
        versions: Sequence[Version],
        *,
        held: float = 0.0,
        undone: bool = False,
        then: Callable[[Connection], None] | None = None,
    ) -> None:
        """Does it in one transaction, and notes it in the ledger once it is committed."""
        with self._lock:
            self._transactions += 1
            name = f"{self.number}.{self._transactions}"
        versions = [replace(version, who=f"<{name}>") for version in versions]
        try:
            with self.engine.connect() as connection:
                say(connection, f"<{name}>")
                for statement, rows in _grouped(versions):
                    connection.execute(text(statement), rows)
                if then is not None:
                    then(connection)
                leave(connection)
                connection.execute(text("INSERT INTO finished (number) VALUES (:name)"), {"name": name})
                if held:
                    time.sleep(held)
                if undone:
                    connection.rollback()
                else:
                    connection.commit()
            committed = not undone
        except DBAPIError:
            committed = self._finished(name)
        if committed:
            self.ledger.keep(versions)
        else:
            self._forget(versions)

    def _finished(self, name: str) -> bool:
        """Whether a transaction was committed, as soon as the server answers."""
        end = time.monotonic() + 60
        while True:
            try:
                with self.engine.connect() as connection:
                    asked = text("SELECT count(*) FROM finished WHERE number = :name")
                    return bool(connection.execute(asked, {"name": name}).scalar_one())
            except DBAPIError:
                assert time.monotonic() < end, "the writers' database does not come back"
                time.sleep(0.1)

    def _next(self, place: Place, *, alive: bool = False) -> Version:
        """The next version of an object, as if the one before were committed; `alive` keeps it from being deleted."""
        number, there = self.state.get(place, (0, False))
        op: Op = "I"
        if there:
            op = "U" if alive or self.dice.random() < 0.85 else "D"
        self.state[place] = (number + 1, op != "D")
        return Version(place=place, number=number + 1, op=op, text="" if op == "D" else self._text())

    def _forget(self, versions: Sequence[Version]) -> None:
        """Goes back to what the objects were before."""
        for version in reversed(versions):
            self.state[version.place] = (version.number - 1, version.op != "I")

    def _some(self, objects: int) -> Place:
        return (
            self.dice.choice((FIELDS, FIELDS, READ_BACK, IMAGES)),
            self.number * SPAN + self.dice.randrange(objects),
        )

    def _new(self, table: str) -> Place:
        self._keys += 1
        return (table, self._keys + SPAN // 2)

    def _text(self) -> str:
        return "".join(self.dice.choices(LETTERS, k=self.dice.randint(1, 12))) + f".{self.dice.randrange(10**6)}"


def _grouped(versions: Sequence[Version]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Statements in the order of the versions; neighbours that differ only in their values go together."""
    statement, rows = "", list[dict[str, Any]]()
    for version in versions:
        mine = STATEMENTS[version.op].format(table=version.place[0])
        if rows and mine != statement:
            yield statement, rows
            rows = []
        statement = mine
        values = {"id": version.place[1], "number": version.number, "text": version.text}
        rows.append({"id": version.place[1]} if version.op == "D" else values)
    if rows:
        yield statement, rows


@contextmanager
def at_work(*works: Callable[[], None]) -> Iterator[None]:
    """Does each work again and again in a thread of its own until the block ends; what one raised is raised here."""
    stop = Flag()
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:  # noqa: BLE001  # it is raised again below
            raised.append(error)

    threads = [Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(90)
    assert not any(thread.is_alive() for thread in threads), "a writer did not come to its end"
    if raised:
        raise raised[0]
