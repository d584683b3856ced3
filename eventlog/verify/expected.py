"""What an output is to hold of each source table: its rows as they are, or what the output's policy
makes of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.compare.columns import columns_of, place_of
from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.compare.streamed import StreamedSide
from eventlog.compare.tables import TableSide, log_text
from eventlog.compare.texts import read_cell
from eventlog.core.errors import UsageError
from eventlog.core.model import ABSENT, Change, Edit, Op, ReadBack, Refusal, RowId, Unreadable
from eventlog.core.policies import Policy
from eventlog.core.policies.columns import Places
from eventlog.core.policies.shape import Shape
from eventlog.core.schema import Column, Table
from eventlog.core.seams import RowReader
from eventlog.core.sql_types import Category
from eventlog.core.tablekey import format_parts
from eventlog.qlik.readings import reading_of
from eventlog.qlik.values import NEVER, Teller
from eventlog.sources.compare.queries import QuerySide

TOLD_ROWS: Final = 500
"""Rows that go through a policy together: what it looks up in other tables is read for all of them
at once.
"""

_scale = re.compile(r"\(\s*\d+\s*,\s*(\d+)\s*\)").search


class VerifiedTable(Struct, frozen=True, kw_only=True):
    """A captured table, and how the log knows it: under which name, and the condition of its
    triggers.

    With a `query` its rows are what that gives.
    """

    table: Table
    called: str
    when: tuple[str, ...] = ()
    query: str | None = None


class Expected(Struct, frozen=True, kw_only=True):
    """What an output is to hold of a table: columns under the names that it has there, and the
    rows.

    `table` is what the table looks like to the output, and `keyed` gives the log's key for one of
    its rows, in each way in which it may be written.
    """

    source: VerifiedTable
    table: Table
    compared: Compared
    side: ComparedSide
    keyed: Callable[[Key], tuple[str, ...]]


def plain(engine: Engine, source: VerifiedTable, there: frozenset[str] | None = None) -> Expected:
    """The rows of a table as they are; the database hashes those that are no query's."""
    table = source.table
    place, compared = place_of(table, there, source.when, source.query)
    rows = TableSide(engine, place, compared)
    side = rows if source.query is None else QuerySide(rows, table.name, compared)
    return Expected(source=source, table=table, compared=compared, side=side, keyed=KeyWriter(table))


class KeyWriter:
    """Writes the key of a row as the log has it, in each way in which a database may have written
    it; the usual one first.
    """

    def __init__(self, table: Table) -> None:
        self._columns = table.key_columns

    def __call__(self, key: Key) -> tuple[str, ...]:
        ways = [_spellings(column, text or "") for column, text in zip(self._columns, key, strict=True)]
        names = [column.name for column in self._columns]
        found = [format_parts(zip(names, one, strict=True)) for one in product(*ways)]
        return tuple(dict.fromkeys(found))


def _spellings(column: Column, text: str) -> list[str]:
    """How databases write a value into a key: a time with nine digits of a second, a number with
    all of its scale.
    """
    if column.category in (Category.TIMESTAMP, Category.DATE):
        long = log_text("timestamp", text)
        return [long, text] if column.category is Category.TIMESTAMP else [text, long]
    scale = _scale(column.type) if column.category is Category.NUMBER else None
    if scale is not None:
        whole, _, fraction = text.partition(".")
        return list(dict.fromkeys([f"{whole}.{fraction.ljust(int(scale[1]), '0')}", text]))
    return [text]


class PolicySide(StreamedSide):
    """What a policy makes of a table's rows."""

    def __init__(
        self,
        table: TableSide,
        source: VerifiedTable,
        shape: Shape,
        policy: Policy,
        reader: RowReader,
        there: frozenset[str],
    ) -> None:
        self._values, columns, compared = columns_of(shape.table, there)
        super().__init__(compared, self._told_rows)
        self._table = table
        self._source = source.table
        self._policy = policy
        self._reader = reader
        names = list(self._values.names)
        self._order = [names.index(column.name) for column in columns]
        ways = [(NEVER, _way(column.type)) for column in self._values.columns]
        self._teller = Teller(self._values, ways, None)

    def source_key(self, key: Key) -> str | None:
        """The key that the source has for what is told under this one, where the policy made
        another one of it.
        """
        return self.filled().noted(key)

    def _told_rows(self, scratch: ScratchSide) -> Iterator[tuple[Any, ...]]:
        width = len(self._compared.key)
        rows = self._table.every()
        while batch := [self._change(row) for row in islice(rows, TOLD_ROWS)]:
            for change in self._looked(batch):
                told = self._policy.tell(change)
                if isinstance(told, Refusal):
                    continue
                if told.route:
                    problem = f"The policy sends rows of {self._source.whole} to several places."
                    raise UsageError(problem, hint="verify compares one place; leave that table out.")
                row = self._teller.row(told, new=True)[0]
                cells = tuple([row[place] for place in self._order])
                if told.row.key != change.row.key:
                    scratch.note(cells[:width], change.row.key)
                yield cells

    def _change(self, row: Sequence[Any]) -> Change:
        """A row as the rules tell it."""
        source = self._source
        width = len(source.key)
        key = KeyWriter(source)(tuple([None if cell is None else str(cell) for cell in row[:width]]))[0]
        names = [name for name, one in source.attributes.items() if one.child is None and not one.multiple]
        edits = tuple([Edit(column=name, new=cell) for name, cell in zip(names, row[width:], strict=True)])
        return Change(row=RowId(source.schema, source.name, key), op=Op.ADD, edits=edits, positions=((0,),))

    def _looked(self, changes: list[Change]) -> list[Change]:
        """The changes with what the policy looks up in rows of other tables."""
        while self._policy.is_looking and any(places := [self._policy.looks(change) for change in changes]):
            asked: dict[RowId, frozenset[str]] = {}
            for row, column in chain.from_iterable(one.values() for one in places):
                asked[row] = asked.get(row, frozenset()) | {column}
            found = self._reader.rows(asked)
            changes = [_with_looked(one, mine, found) for one, mine in zip(changes, places, strict=True)]
        return changes


def _with_looked(change: Change, places: Places, found: Mapping[RowId, ReadBack]) -> Change:
    looked = dict(change.looked or {})
    for name, (row, column) in places.items():
        one = found.get(row)
        values = one.row if isinstance(one, Unreadable) else one
        looked[name] = None if values is None else values.get(column, ABSENT)
    return replace(change, looked=looked)


def _way(sql_type: str) -> Callable[[Any], Any]:
    read = reading_of(sql_type)
    return lambda cell: read_cell(read, cell)


def shape_of(source: VerifiedTable, policy: Policy) -> Shape | None:
    """What a table looks like behind a policy; None where that leaves the table out."""
    place = source.table.schema, source.table.name
    shape = next((one for one in policy.shapes if (one.source.schema, one.source.name) == place), None)
    return None if shape is None or shape.left_out else shape


def behind_policy(
    engine: Engine,
    source: VerifiedTable,
    shape: Shape,
    policy: Policy,
    reader: RowReader,
    there: frozenset[str],
) -> Expected:
    """What a policy makes of a table's rows."""
    table = TableSide(engine, *place_of(source.table, None, source.when, source.query))
    side = PolicySide(table, source, shape, policy, reader, there)
    usual = KeyWriter(source.table)

    def keyed(key: Key) -> tuple[str, ...]:
        known = side.source_key(key)
        return usual(key) if known is None else (known,)

    _, _, compared = columns_of(shape.table, there)
    return Expected(source=source, table=shape.table, compared=compared, side=side, keyed=keyed)
