"""The last proofs as the status page and `eventlog check` tell of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from eventlog.care.ages import utc_text
from eventlog.care.proofs import read_proofs
from eventlog.config.settings import Config
from eventlog.core.plugins import CheckPlugin, Finding, PageCell, PageOrder, PagePlugin, PageTable
from eventlog.core.plural import count_words, duration
from eventlog.core.proofs import LastProof
from eventlog.sources.marks import VERIFIED, Marks
from eventlog.verify.schedule import Schedule
from eventlog.verify.settings import settings_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

MEND: Final = "`eventlog verify` names what differs, and with --repair publishes it again."
OLD: Final = "See that the publisher runs, and that verify.rows_per_second and verify.between leave it enough time."
COLUMNS: Final = ("output", "table", "result", "rows", "compared", "took", "next")


def table_of_proofs(proofs: Sequence[LastProof], schedule: Schedule, now: float) -> PageTable:
    """Make a line for each table: its last proof, its result, and when the next one is due."""
    rows = []
    # What is to be looked at comes first.
    for last in sorted(proofs, key=lambda last: (last.equal and not last.error, last.output, last.table)):
        look: Literal["good", "warn", "bad"] = "good"
        if last.at is not None and not last.equal:
            look = "bad"
        elif last.at is None or last.error or schedule.is_old(last, now):
            look = "warn"
        compared = last.at is not None
        sentence = " ".join(filter(None, [f"{last.verdict}.", last.error, last.note]))
        rows.append(
            (
                PageCell(text=last.output),
                PageCell(text=last.table),
                PageCell(text=sentence, look=look),
                PageCell(text=f"{last.rows:,}" if compared else ""),
                PageCell(text=utc_text(last.at) or ""),
                PageCell(text=duration(last.seconds) if compared else ""),
                PageCell(text=utc_text(schedule.next_at(last, now)) or ""),
            )
        )
    return PageTable(
        caption="The last comparison of each table with what an output has (UTC)",
        columns=COLUMNS,
        rows=tuple(rows),
        empty="Nothing has been compared yet.",
    )


def findings_of(proofs: Sequence[LastProof], schedule: Schedule, now: float) -> Iterator[Finding]:
    """Yield tables with differences, those that could not be compared, and overdue ones."""
    quiet = 0
    for last in proofs:
        name = f"{last.table} at {last.output}"
        if last.at is not None and not last.equal:
            sentence = f"{name}: {last.verdict}, by the proof at {utc_text(last.at)} UTC"
            yield Finding(message=sentence, mend=MEND)
        elif schedule.is_old(last, now):
            sentence = f"{name} was compared last at {utc_text(last.at)} UTC"
            if last.error:
                sentence += f". {last.error}"
            yield Finding(message=sentence, mend=OLD)
        elif last.error and last.at is None:
            sentence = f"{name} could not be compared: {last.error}"
            yield Finding(message=sentence, mend="`eventlog verify` says more.")
        else:
            # A failure after a proof that was equal is tried again, and says nothing by itself.
            quiet += 1
    if quiet or not proofs:
        yield Finding(message=f"{count_words(quiet, 'table')} equal at outputs, by the last proofs")


def _schedule(config: Config) -> Schedule:
    settings = settings_of(config)
    return Schedule(every=settings.seconds, window=settings.window)


def _read(engine: Engine, config: Config) -> tuple[LastProof, ...]:
    from eventlog.sql.findlog import log_columns
    from eventlog.sql.log import Log

    names = log_columns(engine, config.source.wanted_names, config.source.columns)
    log = Log(engine, names)
    with log.transaction() as connection:
        return read_proofs(Marks(log).get(connection, VERIFIED))


def _part(order: PageOrder) -> PageTable | None:
    # Nobody asked for proofs: then the page has no part for them.
    if not settings_of(order.config).every:
        return None
    return table_of_proofs(_read(order.engine, order.config), _schedule(order.config), time.time())


def _findings(config: Any) -> Iterator[Finding]:
    from eventlog.sql.connect import connect

    # Without a database there is no log that could hold proofs.
    if not (settings_of(config).every and config.source.url):
        return
    engine = connect(config.source.url)
    try:
        yield from findings_of(_read(engine, config), _schedule(config), time.time())
    finally:
        engine.dispose()


PROOFS = PagePlugin(title="Proofs", part=_part)
CHECK = CheckPlugin(findings=_findings)
