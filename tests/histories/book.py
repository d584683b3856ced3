"""The book: what writers and operators have done to each row, as the oracle knows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from sqlalchemy import Engine, text

from tests.histories.accidents import Accidents

MOST_OPEN: Final = 4
"""Transactions that are open at once."""

OBJECTS: Final = ("a/1", "a/2", "a/3", "b/1", "b/2")

_insert: Final = text(
    "INSERT INTO event_log (record_id, table_key, status, event_type, event_time, perpetrator, table_name, column_name,"
    " new_value) VALUES (:record, :key, 'N', 2, '2026-03-23 10:57:19', 'app', :table, 'value', :value)"
)

Away = Mapping[str, frozenset[int]]
"""The rows that may be on their way to each output."""


@dataclass
class Row:
    """A row that was committed. `uid` is nobody else's; `record` may be used again."""

    uid: int
    record: int
    object: str
    known_since: int
    """The turn in which it was committed."""
    setbacks: int = 0
    gone: bool = False
    """Somebody has deleted it while it waited."""
    foreign: bool = False
    """Somebody has given it a letter."""
    letter: str = ""
    """The last that is known of it, where it is in the log no more."""
    barred: Away | None = None
    """Only where it was on its way may it come still: it is gone or has a letter."""
    held: Away | None = None
    """Somebody holds it, and only where it was on its way may it come."""
    came_before: list[dict[str, int]] = field(default_factory=list)
    """How often it had come to each output, each time that it was set back after it was settled."""
    excused: set[str] = field(default_factory=set)
    """Outputs for which somebody gave it up."""
    odd: bool = False
    """Set back without the end of what was on its way: nobody can say which letter is right."""

    @property
    def table(self) -> str:
        return self.object.partition("/")[0]

    @property
    def keyless(self) -> bool:
        return self.object.endswith("/")


@dataclass(frozen=True)
class Written:
    """A row of a transaction that is not committed yet."""

    record: int
    object: str


class Book:
    """All rows, and the transactions that are open. Writers of one object wait for each other, as
    they do in databases.
    """

    def __init__(self, engine: Engine, rng: Random, accidents: Accidents, total: int) -> None:
        self.rows: dict[int, Row] = {}
        self.live: dict[int, int] = {}
        """The row that has a record_id now."""
        self.total = total
        self.open: list[list[Written]] = []
        self.turn = 0
        self._engine = engine
        self._rng = rng
        self._accidents = accidents
        self._next = 1
        self._begun = 0

    @property
    def finished(self) -> bool:
        return self._begun >= self.total and not self.open

    def write(self) -> str | None:
        """A step of some writer; what was committed, if anything."""
        rng = self._rng
        if self._begun < self.total and len(self.open) < MOST_OPEN and rng.random() < 0.6:
            self._begin()
        if not self.open or rng.random() > 0.6:
            return None
        transaction = self.open.pop(rng.randrange(len(self.open)))
        if rng.random() < self._accidents.holes:
            return f"rolled back: {', '.join(str(one.record) for one in transaction)}"
        return self._commit(transaction)

    def forget_numbers(self) -> None:
        """Numbers begin again."""
        self._next, self.live = 1, {}

    def _begin(self) -> None:
        rng, written = self._rng, list[Written]()
        taken = {one.object for transaction in self.open for one in transaction}
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            name = rng.choice(OBJECTS)
            if rng.random() < self._accidents.keyless:
                name = f"{name[0]}/"
            if name not in taken:
                written.append(Written(self._next, name))
                self._next += 1 + (rng.random() < self._accidents.holes)
        if written:
            self._begun += len(written)
            self.open.append(written)

    def _commit(self, transaction: list[Written]) -> str:
        said: list[str] = []
        parameters: list[dict[str, object]] = []
        for one in transaction:
            uid = len(self.rows) + 1
            self.rows[uid] = Row(uid, one.record, one.object, self.turn)
            self.live[one.record] = uid
            table, _, key = one.object.partition("/")
            key_text = f"id={key}" if key else None
            parameters.append({"record": one.record, "key": key_text, "table": table, "value": f"u{uid:06d}"})
            said.append(f"{one.record} (row {uid}, {one.object})")
        with self._engine.begin() as connection:
            connection.execute(_insert, parameters)
        return f"committed: {', '.join(said)}"

    def letters(self) -> dict[int, str]:
        """The letter that each record_id has."""
        with self._engine.connect() as connection:
            found = connection.execute(text("SELECT record_id, status FROM event_log ORDER BY record_id"))
            return {int(record): str(letter) for record, letter in found}

    def waiting(self) -> list[int]:
        return [record for record, letter in self.letters().items() if letter == "N"]
