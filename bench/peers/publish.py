"""How fast row changes become durable XDS files: by eventlog, and by consumers of what people capture changes with instead."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from bench.backlog import PER_CHANGE, Standing, backlog, temporary_folder
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.peers import debezium, wal2json
from bench.peers.fetched import ABSENT, fetched
from bench.peers.stream import Slot, filled_slots

CHANGES: Final = 50_000
QUICK: Final = 200
PROMISED: Final = 5.0
"""Times the rate of Debezium's engine."""

OURS: Final = "eventlog, a log of fields"
WAL2JSON: Final = "wal2json consumer"
DEBEZIUM: Final = "Debezium embedded"


def benchmark(*, quick: bool) -> Benchmark:
    """The same row changes from a log and from the write-ahead log."""
    changes = QUICK if quick else CHANGES
    log = backlog("peers_log", changes * PER_CHANGE)
    slots = filled_slots(changes, "wal2json", "pgoutput")
    missing = dict(absent(slots, quick=quick))
    return Benchmark(
        name="peers.publish",
        question="how fast do row changes become durable documents, beside other ways of capture?",
        unit="row change",
        contestants=[
            Contestant(name=OURS, prepare=log.refill, run=Standing(log).publish, units=changes),
            *_peers(slots, missing),
        ],
        targets=targets_of,
        note=(
            "An object is inserted, six columns, and two of them are updated; every contestant writes the same XDS into durable"
            " files, the consumers with eventlog's own writer. The write-ahead log has whole former rows (REPLICA IDENTITY"
            f" FULL); {PER_CHANGE} log rows of fields make one row change. wal2json is read by pg_recvlogical, Debezium hands"
            " JSON to Python; its start is not counted."
            + "".join(f" {name} is left out: {why}." for name, why in missing.items())
        ),
    )


def absent(slots: dict[str, Slot | str], *, quick: bool) -> Iterator[tuple[str, str]]:
    """The peers that cannot be measured here, and why."""
    if isinstance(slots["wal2json"], str):
        yield WAL2JSON, f"the package postgresql-15-wal2json is not there ({slots['wal2json']})"
    if isinstance(slots["pgoutput"], str):
        yield DEBEZIUM, slots["pgoutput"]
    elif quick:
        yield DEBEZIUM, "Java takes long to start, and this is a quick run"
    elif fetched() is None:
        yield DEBEZIUM, ABSENT


def _peers(slots: dict[str, Slot | str], missing: dict[str, str]) -> Iterator[Contestant]:
    for name, plugin, run in ((WAL2JSON, "wal2json", wal2json.publish), (DEBEZIUM, "pgoutput", debezium.publish)):
        slot = slots[plugin]
        if name not in missing and isinstance(slot, Slot):
            reading = partial(run, slot, temporary_folder() / "out")
            yield Contestant(name=name, prepare=slot.rewind, run=reading, units=slot.changes)


def targets_of(timings: Timings) -> list[Target]:
    ours = timings[OURS].rate
    if DEBEZIUM not in timings:
        return [Target(promise="runs without peers", measured=f"{ours:,.0f} row changes/s", reached=True)]
    theirs = timings[DEBEZIUM].rate
    return [
        Target(
            promise=f"at least {PROMISED:g} times as fast as {DEBEZIUM}, in {what}",
            measured=f"{each * ours / theirs:.1f} times",
            reached=each * ours >= PROMISED * theirs,
        )
        for what, each in (("events read", PER_CHANGE), ("row changes", 1))
    ]
