"""Random DDL between random writes, with an independent model of the writer's side: what each change was, by the names and
with the types that its table had at that moment.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from lxml import etree
from msgspec import Struct
from sqlalchemy import Connection, Engine, text

from eventlog.capture.track import track
from eventlog.sql.dialect import dialect_of
from eventlog.tracked.options import TrackRequest, TriggerOptions
from tests.support.logged import run

KEYS = range(1, 7)
SESSIONS = 3


class Column(Struct):
    """A column by a number of its own, which it keeps under every name."""

    number: int
    name: str
    type: str

    def value(self, rng: random.Random) -> Any:
        if rng.random() < 0.15:
            return None
        return rng.randrange(100) if self.type in ("INTEGER", "BIGINT") else f"v{rng.randrange(1000)}"


class Fact(Struct):
    """What one statement did to one row, by the names of its moment, and what these meant: the numbers of the columns.
    `written` are the columns that the statement named.
    """

    table: str
    op: str
    key: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    written: dict[str, Any] = {}
    numbers: dict[str, int] = {}


class Told(Struct):
    """What an output says of one row. `named` are the columns that its mask has."""

    table: str
    op: str
    key: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    named: dict[str, Any] = {}


class Work:
    """A table whose rows and definition change at random, and what was done to it. The column `n` stays as it is: each
    statement writes its own number there.
    """

    def __init__(self, engine: Engine, seed: int, options: TriggerOptions) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.dialect = dialect_of(engine).name
        self.options = options
        self.table, self.key = "usr", "idu"
        self.columns = [
            Column(0, "n", "INTEGER"),
            Column(1, "a1", "VARCHAR(40)"),
            Column(2, "a2", "INTEGER"),
            Column(3, "a3", "VARCHAR(40)"),
        ]
        self.named = {column.name: column.number for column in self.columns}
        self.statements = 0
        self.number = 3
        self.rows: dict[int, dict[int, Any]] = {}
        self.facts: list[Fact] = []
        self.said: list[str] = []
        own = ", ".join(f"{column.name} {column.type}" for column in self.columns)
        run(engine, f"CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, {own})")
        track(engine, ["usr"], options)
        self.sessions: list[Connection | None] = [None] * (SESSIONS if self.dialect != "sqlite" else 1)
        self.owners: dict[int, int] = {}

    @property
    def follows(self) -> bool:
        """Return True if the database follows DDL itself."""
        return self.options.follow_ddl

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Run one statement on one row, in a session without locks on others' rows."""
        key = self.rng.choice(KEYS)
        place = self.owners.setdefault(key, self.rng.randrange(len(self.sessions)))
        session = self.sessions[place]
        if session is None:
            session = self.sessions[place] = self.engine.connect()
        row = self.rows.get(key)
        before = None if row is None else self._named(key, row)
        self.statements += 1
        if row is None:
            new = {column.number: column.value(self.rng) for column in self.columns} | {0: self.statements}
            names = [self.key, *(column.name for column in self.columns)]
            values = [key, *new.values()]
            self._run(session, f"INSERT INTO {self.table} ({', '.join(names)}) VALUES ({_marks(values)})", values)
            self.rows[key] = new
            self._did("INSERT", key, None, self._named(key, new))
        elif self.rng.random() < 0.25:
            self._run(session, f"DELETE FROM {self.table} WHERE {self.key} = :v0", [key])
            del self.rows[key]
            self._did("DELETE", key, before, {})
        else:
            column = self.rng.choice(self.columns[1:])
            value = column.value(self.rng)
            if value == row[column.number]:
                return
            how = f"{column.name} = :v0, n = :v1 WHERE {self.key} = :v2"
            self._run(session, f"UPDATE {self.table} SET {how}", [value, self.statements, key])
            row |= {column.number: value, 0: self.statements}
            self._did("UPDATE", key, before, {self.key: key, "n": self.statements, column.name: value})
        if self.rng.random() < 0.5 or len(self.sessions) == 1:
            self.settle(place)

    def settle(self, place: int | None = None) -> None:
        """Commits what a session has done, or what all have."""
        for number in range(len(self.sessions)) if place is None else [place]:
            session, self.sessions[number] = self.sessions[number], None
            if session is not None:
                session.commit()
                session.close()
            self.owners = {key: owner for key, owner in self.owners.items() if owner != number}

    def close(self) -> None:
        """Ends all sessions, whatever they have done."""
        for session in self.sessions:
            if session is not None:
                session.close()

    def _run(self, session: Connection, statement: str, values: Sequence[Any]) -> None:
        self.said.append(f"{statement} {values}")
        session.execute(text(statement), {f"v{place}": value for place, value in enumerate(values)})

    def _named(self, key: int, row: dict[int, Any]) -> dict[str, Any]:
        return {self.key: key, **{column.name: row[column.number] for column in self.columns}}

    def _did(self, op: str, key: int, before: dict[str, Any] | None, written: dict[str, Any]) -> None:
        after = self._named(key, self.rows[key]) if key in self.rows else None
        self.facts.append(Fact(self.table, op, key, before, after, written, self.numbers))

    @property
    def numbers(self) -> dict[str, int]:
        """Map the present column names to the columns' numbers."""
        return {column.name: column.number for column in self.columns}

    # --- DDL ---------------------------------------------------------------------------------------------------------

    def alter(self) -> None:
        """Alter the table; track it again if the database does not follow DDL."""
        self.settle()
        kinds = ["add", "rename", "rename table", "truncate"]
        kinds += ["drop", "drop"] if len(self.columns) > 2 else []
        kinds += ["type"] if self.dialect != "sqlite" else []
        kinds += ["rename key"] if self.follows else []
        getattr(self, "_" + self.rng.choice(kinds).replace(" ", "_"))()

    def _add(self) -> None:
        kind = self.rng.choice(["INTEGER", "VARCHAR(40)"])
        self.columns.append(Column(self._next(), self._free_name(), kind))
        self._ddl(f"ALTER TABLE {self.table} ADD COLUMN {self.columns[-1].name} {kind}")
        self.named[self.columns[-1].name] = self.columns[-1].number
        for row in self.rows.values():
            row[self.columns[-1].number] = None

    def _drop(self) -> None:
        column = self.rng.choice(self.columns[1:])
        if self.dialect == "sqlite":  # refuses to drop what a trigger names
            self._track(exclude=(column.name,))
        self.columns.remove(column)
        self._ddl(f"ALTER TABLE {self.table} DROP COLUMN {column.name}", exclude=())
        for row in self.rows.values():
            del row[column.number]

    def _rename(self) -> None:
        column = self.rng.choice(self.columns[1:])
        name = self._free_name()
        self._ddl(f"ALTER TABLE {self.table} RENAME COLUMN {column.name} TO {name}")
        column.name = name
        self.named[name] = column.number

    def _rename_key(self) -> None:
        name = "idx" if self.key == "idu" else "idu"
        self._ddl(f"ALTER TABLE {self.table} RENAME COLUMN {self.key} TO {name}")
        self.key = name

    def _rename_table(self) -> None:
        name = "person" if self.table == "usr" else "usr"
        former, self.table = self.table, name
        self._ddl(f"ALTER TABLE {former} RENAME TO {name}")

    def _type(self) -> None:
        column = self.rng.choice(self.columns[1:])
        number = column.type in ("INTEGER", "BIGINT")
        kind = self.rng.choice(["BIGINT", "VARCHAR(80)", "TEXT"] if number else ["VARCHAR(80)", "TEXT"])
        how = f"MODIFY COLUMN {column.name} {kind}"
        if self.dialect == "postgresql":
            how = f"ALTER COLUMN {column.name} TYPE {kind}"
        if number and kind != "BIGINT":
            for row in self.rows.values():
                value = row[column.number]
                row[column.number] = None if value is None else str(value)
        column.type = kind
        self._ddl(f"ALTER TABLE {self.table} {how}")

    def _truncate(self) -> None:
        statement = f"TRUNCATE {self.table}" if self.dialect == "postgresql" else f"DELETE FROM {self.table}"
        self._ddl(statement, tracks=False)
        for key in sorted(self.rows):
            before = self._named(key, self.rows.pop(key))
            self._did("DELETE", key, before, {})

    def _ddl(self, statement: str, *, tracks: bool = True, **asked: Any) -> None:
        self.said.append(statement)
        run(self.engine, statement)
        if tracks and not self.follows:
            self._track(**asked)

    def _track(self, **asked: Any) -> None:
        self.said.append(f"track {self.table} {asked}")
        track(self.engine, [self.table], TrackRequest(**asked))

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _free_name(self) -> str:
        """Return an unused name; if columns are known by numbers, perhaps a former one."""
        used = {column.name for column in self.columns}
        before = sorted(set(self.named) - used)
        if self.follows and before and self.rng.random() < 0.5:
            return self.rng.choice(before)
        number = len(self.named) + 1
        return f"a{number}"

    # --- what is there -----------------------------------------------------------------------------------------------

    def stored(self) -> dict[int, dict[str, str | None]]:
        """Read the rows of the table as text, by present names."""
        names = [self.key, *(column.name for column in self.columns)]
        with self.engine.connect() as connection:
            rows = connection.execute(text(f"SELECT {', '.join(names)} FROM {self.table}"))
            return {
                row[0]: {name: _text(value) for name, value in zip(names[1:], row[1:], strict=True)} for row in rows
            }

    def modelled(self) -> dict[int, dict[str, str | None]]:
        """Return the model's rows as text, by present names."""
        return {
            key: {column.name: _text(row[column.number]) for column in self.columns} for key, row in self.rows.items()
        }


def _marks(values: Sequence[Any]) -> str:
    return ", ".join(f":v{place}" for place in range(len(values)))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


class NewFiles:
    """The files in a folder that came since somebody looked last, in the order of their names."""

    def __init__(self, folder: Path, suffix: str) -> None:
        self.folder, self.suffix = folder, suffix
        self._seen: set[Path] = set()

    def __iter__(self) -> Iterator[Path]:
        found = sorted(set(self.folder.rglob(f"*{self.suffix}")) - self._seen)
        self._seen.update(found)
        return iter(found)


class MessageFiles:
    """What messages tell."""

    def __init__(self, folder: Path) -> None:
        self._files = NewFiles(folder, ".jsonl")

    def told(self) -> list[Told]:
        """Return the changes since the last look."""
        found = []
        for file in self._files:
            for line in file.read_text().splitlines():
                one = json.loads(line)
                headers, data = one["value"]["headers"], one["value"]["data"]
                gone = headers["operation"] == "DELETE"
                mask = int(headers["columnMask"], 16)
                named = {name: value for place, (name, value) in enumerate(data.items()) if mask >> place & 1}
                before = data if gone else one["value"]["beforeData"]
                table = one["topic"].rpartition(".")[2]
                found.append(Told(table, headers["operation"], key_in(data), before, None if gone else data, named))
        return found


class ChangeFiles:
    """What the rows of change tables tell."""

    def __init__(self, folder: Path) -> None:
        self._files = NewFiles(folder, ".parquet")

    def told(self) -> list[Told]:
        """Return the changes since the last look, in order over all tables."""
        rows: list[tuple[str, str, dict[str, Any]]] = []
        for file in self._files:
            table = file.parent.name.removesuffix("__ct").rpartition(".")[2]
            rows += [(row["header__change_seq"], table, row) for row in pq.read_table(file).to_pylist()]
        found, before = [], None
        # The row before stands ahead of the row after, under the same change_seq.
        for _, table, row in sorted(rows, key=lambda one: (one[0], one[2]["header__change_oper"] != "B")):
            own = {name: value for name, value in row.items() if not name.startswith("header__")}
            op = row["header__operation"]
            if op == "BEFOREIMAGE":
                before = own
                continue
            mask = int.from_bytes(row["header__change_mask"], "little")
            named = {name: own[name] for place, name in enumerate(row) if name in own and mask >> place & 1}
            gone = op == "DELETE"
            found.append(Told(table, op, key_in(own), own if gone else before, None if gone else own, named))
            before = None
        return found


def key_in(row: dict[str, Any]) -> int:
    """Return the key of a row, under either of its names."""
    return int(next(row[name] for name in ("idu", "idx") if name in row))


class RowMirror:
    """A table that does what changes say, with its columns by the numbers of the model. A change that tells the number of
    its statement has names of that time, else those of today.
    """

    def __init__(self) -> None:
        self.rows: dict[int, dict[int, str | None]] = {}

    def apply(self, told: Sequence[Told], work: Work, *, of_then: bool) -> None:
        """Takes what came since the last time."""
        facts = {fact.written["n"]: fact for fact in work.facts if "n" in fact.written}
        for one in told:
            if one.op == "DELETE":
                self.rows.pop(one.key, None)
                continue
            numbers = facts[one.named["n"]].numbers if of_then else work.numbers
            row = self.rows.setdefault(one.key, {})
            row.update({numbers[name]: _text(value) for name, value in one.named.items() if name in numbers})

    def shown(self, work: Work) -> dict[int, dict[str, str | None]]:
        """Return the rows by present column names."""
        return shown(self.rows, work)


class XdsMirror:
    """A directory that does what XDS documents say: attributes by the numbers of the model's columns."""

    def __init__(self, folder: Path) -> None:
        self._files = NewFiles(folder, ".xml")
        self.rows: dict[int, dict[int, str | None]] = {}

    def apply(self, work: Work) -> None:
        """Takes the documents that came since the last time; columns are meant by today's names, else by former ones."""
        for file in self._files:
            for element in etree.parse(str(file)).getroot().iter("add", "modify", "delete"):
                self._event(element, work.named | work.numbers)

    def _event(self, element: Any, named: dict[str, int]) -> None:
        association = element.findtext("association")
        key = int(association.partition(",")[0].partition("=")[2])
        if element.tag == "delete":
            self.rows.pop(key, None)
            return
        row = self.rows.setdefault(key, {})
        for attribute in element.iter("add-attr", "modify-attr"):
            name = attribute.get("attr-name")
            if name in ("idu", "idx"):
                continue
            number = named[name]
            if attribute.find("remove-all-values") is not None or attribute.find("remove-value") is not None:
                row[number] = None
            for value in attribute.iterfind("add-value/value"):
                row[number] = value.text or ""
            for value in attribute.iterfind("value"):
                row[number] = value.text or ""

    def shown(self, work: Work) -> dict[int, dict[str, str | None]]:
        """Return the rows by present column names."""
        return shown(self.rows, work)


def shown(rows: dict[int, dict[int, str | None]], work: Work) -> dict[int, dict[str, str | None]]:
    """Return rows by present column names."""
    return {key: {column.name: row.get(column.number) for column in work.columns} for key, row in rows.items()}
