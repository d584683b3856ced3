"""What whole transactions cost: the same rows into messages and change tables, by object and in whole transactions."""

from __future__ import annotations

from functools import partial
from typing import Final

from msgspec.structs import replace
from sqlalchemy import text

from bench.backlog import Backlog, backlog, engine, settle_down
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput

ROWS: Final = 200_000
QUICK: Final = 2_000
PROMISED: Final = 0.8
"""Of the rate without whole transactions."""
FORMATS: Final = {"messages": "messages", "change tables": "change-tables"}
TRANSACTION_ROWS: Final = 12
"""Log rows of a transaction."""
AT_ONCE: Final = 4
"""Transactions that write at the same time, so that their rows stand between each other's."""
IN_TRANSACTIONS: Final = f"""
UPDATE {{log}}_kept SET eventlog_transaction = 1000
  + (record_id - first.id) / {AT_ONCE * TRANSACTION_ROWS} * {AT_ONCE}
  + (record_id - first.id) / 8 % {AT_ONCE}
FROM (SELECT min(record_id) AS id FROM {{log}}_kept) AS first
"""
"""Objects have eight rows each, so no object is changed by two transactions."""


def benchmark(*, quick: bool) -> Benchmark:
    """Each format as it is, and in whole transactions."""
    log = backlog("transactions_log", QUICK if quick else ROWS)
    with engine().begin() as connection:
        connection.execute(text(IN_TRANSACTIONS.format(log=log.name)))
    settle_down(f"{log.name}_kept")
    contestants = [
        Contestant(
            name=_name(form, whole=whole),
            prepare=log.refill,
            run=partial(_published, log, FORMATS[form], whole=whole),
            units=log.count,
            floor=form == "messages" and not whole,
        )
        for form in FORMATS
        for whole in (False, True)
    ]
    return Benchmark(
        name="transactions",
        question="what do whole transactions cost?",
        unit="row",
        contestants=contestants,
        targets=_targets,
        note=(
            f"Per-field rows, {TRANSACTION_ROWS} of a transaction on average, {AT_ONCE} transactions at a time; the output"
            " are files. The time is that of a publisher that is opened, publishes what waits, and is closed."
        ),
    )


def _name(form: str, *, whole: bool) -> str:
    return f"{form}, whole transactions" if whole else form


def _published(log: Backlog, form: str, *, whole: bool) -> None:
    config = log.config()
    output = FilesOutput(path=f"{log.folder}-{form}-{whole}", format=form, transactions="whole" if whole else "mixed")
    with Publisher(replace(config, output=(output,))) as publisher:
        finished = sum(report.finished for report in publisher.rounds(until_empty=True))
    if finished != log.count:
        raise AssertionError(f"{finished} of {log.count} rows were published")


def _targets(timings: Timings) -> list[Target]:
    found = []
    for form in FORMATS:
        share = timings[_name(form, whole=True)].rate / timings[_name(form, whole=False)].rate
        promise = f"{form} in whole transactions: at least {PROMISED:g} of the rate without"
        found.append(Target(promise=promise, measured=f"{share:.2f}", reached=share >= PROMISED))
    return found
