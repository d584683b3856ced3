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

from eventlog.sql.dialect import dialect_of
from eventlog.sql.triggers import TrackRequest, TriggerOptions, track
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
    """What one statement did to one row, by the names of its moment."""

    table: str
    op: str
    key: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class Work:
    """A table whose rows and definition change at random, and what was done to it."""

    def __init__(self, engine: Engine, seed: int, options: TriggerOptions) -> None:
        self.engine = engine
        self.rng = random.Random(seed)
        self.dialect = dialect_of(engine).name
        self.options = options
        self.table, self.key = "usr", "idu"
        self.columns = [Column(1, "a1", "VARCHAR(40)"), Column(2, "a2", "INTEGER"), Column(3, "a3", "VARCHAR(40)")]
        self.named = {"a1": 1, "a2": 2, "a3": 3}
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
        """Whether the database follows DDL itself."""
        return self.options.follow_ddl

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self) -> None:
        """One statement about one row, by a session that has nobody's row in its hands."""
        key = self.rng.choice(KEYS)
        place = self.owners.setdefault(key, self.rng.randrange(len(self.sessions)))
        session = self.sessions[place]
        if session is None:
            session = self.sessions[place] = self.engine.connect()
        row = self.rows.get(key)
        before = None if row is None else self._named(key, row)
        if row is None:
            new = {column.number: column.value(self.rng) for column in self.columns}
            names = [self.key, *(column.name for column in self.columns)]
            values = [key, *new.values()]
            self._run(session, f"INSERT INTO {self.table} ({', '.join(names)}) VALUES ({_marks(values)})", values)
            self.rows[key] = new
            self._did("INSERT", key, None)
        elif self.rng.random() < 0.25:
            self._run(session, f"DELETE FROM {self.table} WHERE {self.key} = :v0", [key])
            del self.rows[key]
            self.facts.append(Fact(self.table, "DELETE", key, before, None))
        else:
            column = self.rng.choice(self.columns)
            value = column.value(self.rng)
            if value == row[column.number]:
                return
            self._run(session, f"UPDATE {self.table} SET {column.name} = :v0 WHERE {self.key} = :v1", [value, key])
            row[column.number] = value
            self._did("UPDATE", key, before)
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

    def _run(self, session: Connection, statement: str, values: Sequence[Any]) -> None:
        self.said.append(f"{statement} {values}")
        session.execute(text(statement), {f"v{place}": value for place, value in enumerate(values)})

    def _named(self, key: int, row: dict[int, Any]) -> dict[str, Any]:
        return {self.key: key, **{column.name: row[column.number] for column in self.columns}}

    def _did(self, op: str, key: int, before: dict[str, Any] | None) -> None:
        self.facts.append(Fact(self.table, op, key, before, self._named(key, self.rows[key])))

    # --- DDL ---------------------------------------------------------------------------------------------------------

    def alter(self) -> None:
        """One change of the table's definition; where the database does not follow it, the script tracks it anew."""
        self.settle()
        kinds = ["add", "rename", "rename table", "truncate"]
        kinds += ["drop", "drop"] if len(self.columns) > 1 else []
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
        column = self.rng.choice(self.columns)
        if self.dialect == "sqlite":  # refuses to drop what a trigger names
            self._track(exclude=(column.name,))
        self.columns.remove(column)
        self._ddl(f"ALTER TABLE {self.table} DROP COLUMN {column.name}", exclude=())
        for row in self.rows.values():
            del row[column.number]

    def _rename(self) -> None:
        column = self.rng.choice(self.columns)
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
        column = self.rng.choice(self.columns)
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
        for key, row in sorted(self.rows.items()):
            self.facts.append(Fact(self.table, "DELETE", key, self._named(key, row), None))
        self.rows.clear()

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
        """A name that no column has; where columns are known by numbers, one that another had before."""
        used = {column.name for column in self.columns}
        before = sorted(set(self.named) - used)
        if self.follows and before and self.rng.random() < 0.5:
            return self.rng.choice(before)
        number = len(self.named) + 1
        return f"a{number}"

    # --- what is there -----------------------------------------------------------------------------------------------

    def stored(self) -> dict[int, dict[str, str | None]]:
        """The rows of the table as texts, by today's names."""
        names = [self.key, *(column.name for column in self.columns)]
        with self.engine.connect() as connection:
            rows = connection.execute(text(f"SELECT {', '.join(names)} FROM {self.table}"))
            return {
                row[0]: {name: _text(value) for name, value in zip(names[1:], row[1:], strict=True)} for row in rows
            }

    def modelled(self) -> dict[int, dict[str, str | None]]:
        """The same by the model."""
        return {
            key: {column.name: _text(row[column.number]) for column in self.columns} for key, row in self.rows.items()
        }


def _marks(values: Sequence[Any]) -> str:
    return ", ".join(f":v{place}" for place in range(len(values)))


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


class MessageFiles:
    """What the files of an output say, those that came since somebody looked last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[Path] = set()

    def new(self) -> Iterator[Path]:
        """Files in the order of their names."""
        for file in sorted(one for one in self.folder.rglob("*.*") if one.suffix in (".xml", ".jsonl")):
            if file not in self._seen:
                self._seen.add(file)
                yield file

    def facts(self) -> list[Fact]:
        """The changes that messages tell."""
        found = []
        for file in self.new():
            for line in file.read_text().splitlines():
                one = json.loads(line)
                value = one["value"]
                op = value["headers"]["operation"]
                data, before = value["data"], value["beforeData"]
                key = next(data[name] for name in ("idu", "idx") if name in data)
                table = one["topic"].rpartition(".")[2]
                found.append(Fact(table, op, key, data if op == "DELETE" else before, None if op == "DELETE" else data))
        return found


class XdsMirror:
    """A directory that does what XDS documents say: attributes by the numbers of the model's columns."""

    def __init__(self, folder: Path) -> None:
        self._files = MessageFiles(folder)
        self.rows: dict[int, dict[int, str | None]] = {}

    def apply(self, work: Work) -> None:
        """Takes the documents that came since the last time; columns are meant by today's names, else by former ones."""
        today = {column.name: column.number for column in work.columns}
        for file in self._files.new():
            for element in etree.parse(str(file)).getroot().iter("add", "modify", "delete"):
                self._event(element, work.named | today)

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
        """The rows by today's names of their columns."""
        return {key: {column.name: row.get(column.number) for column in work.columns} for key, row in self.rows.items()}


class ChangeFiles:
    """What the rows of change tables say, those in files that came since somebody looked last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._seen: set[Path] = set()

    def facts(self) -> list[Fact]:
        """The changes, in their order over all tables."""
        rows: list[tuple[str, str, dict[str, Any]]] = []
        for file in sorted(set(self.folder.rglob("*.parquet")) - self._seen):
            self._seen.add(file)
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
            key = next(own[name] for name in ("idu", "idx") if name in own)
            gone = op == "DELETE"
            found.append(Fact(table, op, key, own if gone else before, None if gone else own))
            before = None
        return found
