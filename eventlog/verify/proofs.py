"""The last proofs as the status page and `eventlog check` tell of them."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from eventlog.config.settings import Config
from eventlog.core.plugins import CheckPlugin, Finding, PageCell, PageOrder, PagePlugin, PageTable
from eventlog.core.plural import counted, duration
from eventlog.core.proofs import LastProof, read_proofs
from eventlog.sources.marks import VERIFIED, Marks
from eventlog.verify.schedule import Schedule

if TYPE_CHECKING:
    from sqlalchemy import Engine

MEND: Final = "`eventlog verify` names what differs, and with --repair publishes it again."
OLD: Final = "See that the publisher runs, and that verify.rows_per_second and verify.between leave it enough time."
COLUMNS: Final = ("output", "table", "result", "rows", "compared", "took", "next")


def table_of_proofs(proofs: Sequence[LastProof], schedule: Schedule, now: float) -> PageTable:
    """A line for each table: its last proof, whether it was equal, and when the next one is due."""
    rows = []
    for one in sorted(proofs, key=lambda one: (one.equal and not one.error, one.output, one.table)):
        look: Literal["good", "warn", "bad"] = "good" if one.equal else "bad"
        if one.error or schedule.is_old(one, now) or one.at is None:
            look = "warn" if one.equal or one.at is None else "bad"
        said = " ".join(filter(None, [f"{one.said}.", one.error, one.note]))
        rows.append(
            (
                PageCell(text=one.output),
                PageCell(text=one.table),
                PageCell(text=said, look=look),
                PageCell(text="" if one.at is None else f"{one.rows:,}"),
                PageCell(text=_utc(one.at)),
                PageCell(text="" if one.at is None else duration(one.seconds)),
                PageCell(text=_utc(schedule.next_at(one, now))),
            )
        )
    return PageTable(
        caption="The last comparison of each table with what an output has (UTC)",
        columns=COLUMNS,
        rows=tuple(rows),
        empty="Nothing has been compared yet.",
    )


def findings_of(proofs: Sequence[LastProof], schedule: Schedule, now: float) -> Iterator[Finding]:
    """What is to be looked at: tables that differ, that could not be compared, and that were not
    for long.
    """
    quiet = 0
    for one in proofs:
        name = f"{one.table} at {one.output}"
        if one.at is not None and not one.equal:
            yield Finding(said=f"{name}: {one.said}, by the proof at {_utc(one.at)} UTC", mend=MEND)
        elif schedule.is_old(one, now):
            why = f". {one.error}" if one.error else ""
            yield Finding(said=f"{name} was compared last at {_utc(one.at)} UTC{why}", mend=OLD)
        elif one.error and one.at is None:
            yield Finding(said=f"{name} could not be compared: {one.error}", mend="`eventlog verify` says more.")
        else:
            quiet += 1
    if quiet or not proofs:
        yield Finding(said=f"{counted(quiet, 'table')} equal at outputs, by the last proofs")


def _schedule(config: Config) -> Schedule:
    return Schedule(every=config.verify.seconds, window=config.verify.window)


def _read(engine: Engine, config: Config) -> tuple[LastProof, ...]:
    from eventlog.sql.findlog import log_columns
    from eventlog.sql.log import Log

    log = Log(engine, log_columns(engine, config.source.wanted_names, config.source.columns))
    with log.transaction() as connection:
        return read_proofs(Marks(log).get(connection, VERIFIED))


def _part(order: PageOrder) -> PageTable | None:
    if not order.config.verify.every:
        return None
    return table_of_proofs(_read(order.engine, order.config), _schedule(order.config), time.time())


def _findings(config: Any) -> Iterator[Finding]:
    from eventlog.sql.connect import connect

    if not (config.verify.every and config.source.url):
        return
    engine = connect(config.source.url)
    try:
        yield from findings_of(_read(engine, config), _schedule(config), time.time())
    finally:
        engine.dispose()


def _utc(seconds: float | None) -> str:
    return "" if seconds is None else dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


PROOFS = PagePlugin(title="Proofs", part=_part)
CHECK = CheckPlugin(findings=_findings)
