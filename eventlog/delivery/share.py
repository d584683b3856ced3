"""What one worker does with its share of a batch: decides it by the rules and writes the changes for every output."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import astuple, replace

from eventlog.core.model import Event, Outcome, Position, ReadBack, Refusal, RowId, Transaction
from eventlog.core.rules import Options, judge, screen, wanted
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format, RowReader, Written

if TYPE_CHECKING:
    from sqlalchemy import Engine


class Reading(Struct, frozen=True, kw_only=True):
    """The database in which a worker reads rows back, in sessions of its own, and how many bytes of them."""

    url: str
    statement_timeout: float | None = None
    lock_timeout: float | None = None
    share: int = 10_000_000
    value_limit: int = 64_000_000


class Job(Struct, frozen=True, kw_only=True):
    """What a worker must know for all its shares; `formats` are those of the outputs."""

    catalog: Catalog
    options: Options
    formats: tuple[Format, ...]
    reading: Reading | None = None


Text = str | None
Plain = tuple[Position, int | None, Text, Text, Text, Text, Text, Text, Text, Transaction | None, Text]
"""An event as a message has it: the values of its fields, in their order."""


class Share(Struct, frozen=True, array_like=True):
    """The events of whole objects of one batch, and what the database's clock said."""

    events: Sequence[Plain]
    now: dt.datetime | None = None


def share_of(events: Sequence[Event], now: dt.datetime | None) -> Share:
    """What a worker gets to decide."""
    return Share([astuple(event) for event in events], now)


class Done(Struct, frozen=True, array_like=True):
    """What became of a share: the outcomes that are not plain, and for each output what its format wrote and refused."""

    others: list[Outcome]
    written: list[list[Written]]
    refused: list[list[Refusal]]
    changes: int


class Worker:
    """Does one share after the other."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._reader: RowReader | None = None

    def do(self, share: Share) -> Done:
        """Decides the share, with rows read back where events ask for them, and writes its changes."""
        job = self._job
        options = replace(job.options, now=share.now)
        screened = screen(_events(share.events), job.catalog, options)
        decision = judge(screened, self._read_back(wanted(screened)), options)
        written: list[list[Written]] = []
        refused: list[list[Refusal]] = []
        for form in job.formats:
            items = list(form.writer(job.catalog)(decision.changes))
            written.append([item for item in items if isinstance(item, Written)])
            refused.append([item for item in items if isinstance(item, Refusal)])
        return Done(
            others=list(screened.outcomes.values()), written=written, refused=refused, changes=len(decision.changes)
        )

    def _read_back(self, asked: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack] | None:
        if self._job.reading is None:
            return None
        if not asked:
            return {}
        if self._reader is None:
            from eventlog.sql.rows import Room, SqlRowReader

            reading = self._job.reading
            room = Room(share=reading.share, value_limit=reading.value_limit)
            self._reader = SqlRowReader(_engine(reading), self._job.catalog, room)
        return self._reader.rows(asked)


def _events(rows: Sequence[Plain]) -> list[Event]:
    return [
        Event(
            position=position,
            kind=kind,
            table=table,
            key=key,
            column=column,
            old=old,
            new=new,
            time=time,
            perpetrator=perpetrator,
            transaction=transaction,
            fault=fault,
        )
        for position, kind, table, key, column, old, new, time, perpetrator, transaction, fault in rows
    ]


def _engine(reading: Reading) -> Engine:
    from eventlog.sql.connect import connect
    from eventlog.sql.limits import limit_sessions

    engine = connect(reading.url)
    limit_sessions(engine, reading.statement_timeout, reading.lock_timeout)
    return engine
