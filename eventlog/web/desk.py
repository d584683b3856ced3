"""What the page asks of the log and does to it: lists, single rows, and the three acts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.admin.explain import explain
from eventlog.admin.rows import LARGEST_NUMBER, MOST_LETTERS, PROCESSED, Choice, hold, release, requeue
from eventlog.config.settings import Config
from eventlog.core.errors import DataError, UsageError, shortened
from eventlog.web.listing import BEYOND, Cursor, Filters, has_number_index, listing, one_row
from eventlog.web.pages import ACTIONS, Viewer, row_page, rows_page, said_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.names import LogNames
    from eventlog.web.collector import Collector

PAGE: Final = "the status page"
"""Who is noted as the holder of a row: the page knows nobody's name."""
ACT_ROWS: Final = 500
"""Rows that one act may name."""

_digits = re.compile(r"-?[0-9]{1,19}").fullmatch


class Query(Struct, frozen=True, kw_only=True):
    """A page of the list as its address says it."""

    filters: Filters
    cursor: Cursor


class Act(Struct, frozen=True, kw_only=True):
    """What is to be done with which rows."""

    action: str
    numbers: tuple[int, ...]


class Desk:
    """One log, seen and cared for through the page."""

    def __init__(self, engine: Engine, names: LogNames, config: Config, collector: Collector) -> None:
        self.collector = collector
        self._engine = engine
        self._names = names
        self._config = config
        self._numbered = has_number_index(engine, names)

    def rows(self, query: Query, look: Viewer) -> str:
        """A page of the list."""
        found = listing(self.collector.log, query.filters, query.cursor, numbered=self._numbered)
        return rows_page(found, query.filters, look, first=query.cursor == Cursor())

    def row(self, number: int, look: Viewer, done: str) -> str:
        """A row and its explanation; DataError when there is none."""
        found = one_row(self.collector.log, number)
        if found is None:
            raise DataError(
                f"The event log {self.collector.log.name} has no row {number}.",
                hint="The list has those that are there.",
            )
        explained = explain(self._engine, self._names, self._config, number)
        action, _, count = done.partition(" ")
        rows = _number(count)
        said = said_of(action, rows) if action in ACTIONS and rows is not None else ""
        return row_page(found, explained, look, said)

    def act(self, act: Act) -> int:
        """Does it; says with how many rows."""
        log, runs = self.collector.log, [(number, number) for number in act.numbers]
        if act.action == "hold":
            count = hold(log, runs, by=PAGE)
        elif act.action == "release":
            count = release(log, runs)
        else:
            count = requeue(log, runs, Choice(letters=PROCESSED))
        self.collector.hurry()
        return count


def read_query(asked: Mapping[str, str]) -> Query:
    """What the address of a list asks for; what cannot be read asks for nothing."""
    letters = "".join(dict.fromkeys(_text(asked, "status", 400)))[:MOST_LETTERS]
    filters = Filters(
        letters=letters,
        reason=_text(asked, "reason", 40),
        table=_text(asked, "table", 400),
        key=_text(asked, "key", 4000),
        text=_text(asked, "text", 200),
    )
    return Query(
        filters=filters, cursor=Cursor(before=_number(asked.get("before")) or BEYOND, place=_number(asked.get("place")))
    )


def read_act(action: str, ids: Sequence[str]) -> Act:
    """What a form asks for; UsageError when it is nothing that can be done."""
    numbers = tuple(sorted({number for text in ids if (number := _number(text)) is not None}))
    if action not in ACTIONS:
        raise UsageError(f"There is no such act; there are {', '.join(ACTIONS)}.")
    if not numbers:
        raise UsageError("No row was chosen. Go back and tick some.")
    if len(numbers) > ACT_ROWS:
        raise UsageError(f"That is more than {ACT_ROWS} rows at once; `eventlog {action}` takes ranges.")
    return Act(action=action, numbers=numbers)


def _text(asked: Mapping[str, str], name: str, longest: int) -> str:
    """A text as databases take it, which know no zero bytes and no halves of characters."""
    return asked.get(name, "").replace("\0", "")[:longest].encode("utf-8", "ignore").decode()


def read_row(text: str) -> int:
    """The number of a row in an address; DataError where no log has such a row."""
    number = _number(text)
    if number is None:
        hint = "A row is found by its number, such as /rows/42."
        raise DataError(f"{shortened(text, 40)} is no number of a row.", hint=hint)
    return number


def _number(text: str | None) -> int | None:
    """A number as rows and places have them: digits, as many as fit into 64 bits, and perhaps a minus."""
    found = _digits(text or "")
    return int(text) if text and found and -LARGEST_NUMBER < int(text) < LARGEST_NUMBER else None
