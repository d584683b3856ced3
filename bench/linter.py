"""How fast rows of LINTER's queue become changes, and what the documents after them cost."""

from __future__ import annotations

import datetime as dt
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from typing import Any

from msgspec.structs import astuple

from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.core.model import Change, Image, Row
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.sources.linter.images import CommittedRows
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.rows import QueueRow, queue_row
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.stream.images import decide_images
from eventlog.sources.stream.spill import spill_to
from eventlog.xds.write import XdsFormat
from eventlog_streams_tools.linter.emulator import EmulatedOperation, LinterEmulator

PROMISED = 100_000
PER_TRANSACTION = 9
CYCLE = (Action.INSERT, Action.UPDATE, Action.DELETE)
NUMBER = 17
START = dt.datetime(2024, 3, 15, 10, 20, 30)
READING = ReadingSettings(code_page="cp1251")
SCHEMA = Catalog(
    [
        Table(
            name="ORDERS",
            schema="SHOP",
            number=NUMBER,
            columns=(
                Column(name="ID", type="int", key=1),
                Column(name="NAME", type="varchar(20)"),
                Column(name="PRICE", type="decimal"),
                Column(name="N", type="smallint"),
                Column(name="AT", type="date"),
                Column(name="CODE", type="char(8)"),
            ),
        )
    ]
)
BATCH = 10_000
LIMIT = 2_000_000
GROWTH = 1.1


def benchmark(*, quick: bool) -> Benchmark:
    """From plain tuples, as a driver hands them out, to Changes."""
    size = 2_000 if quick else 200_000
    rows = [astuple(row) for row in queue_rows(size)]
    return Benchmark(
        name="linter",
        question="how fast do rows of LINTER's queue become changes?",
        unit="row",
        contestants=[
            Contestant(name="rows only", run=partial(_read, rows), units=len(rows), floor=True),
            Contestant(name="rows to changes", run=partial(_changed, rows, READING), units=len(rows)),
            Contestant(
                name="rows to changes, all spilled",
                run=partial(_changed, rows, ReadingSettings(code_page="cp1251", spill_bytes=1_000)),
                units=len(rows),
            ),
            Contestant(name="rows to XDS", run=partial(_published, rows), units=len(rows)),
        ],
        targets=partial(_targets, peaks=_peaks(100 if quick else 10_000)),
        note=(
            f"Inserts, updates and deletes in turn, {PER_TRANSACTION} to a transaction and a COMMIT, six columns"
            " (INT, VARCHAR, DECIMAL, SMALLINT, DATE, CHAR) in packed-v1, code page CP1251, DATA with its 3400 bytes."
            " The floor only makes rows of the driver's tuples. Spilled: every transaction goes to the disk and back."
        ),
    )


def queue_rows(number: int) -> Iterator[QueueRow]:
    """About so many rows of an emulated queue."""
    emulator = LinterEmulator(SCHEMA, READING)
    for transaction in range(number // (PER_TRANSACTION + 1)):
        for place in range(PER_TRANSACTION):
            action, key = CYCLE[place % 3], transaction * PER_TRANSACTION + place // 3
            before = None if action is Action.INSERT else _row(key, 1)
            after = None if action is Action.DELETE else _row(key, 1 + (action is Action.UPDATE))
            done = EmulatedOperation(
                transaction=transaction, action=action, table=NUMBER, rowid=key, before=before, after=after
            )
            yield from emulator.rows(done)
        yield from emulator.rows(EmulatedOperation(transaction=transaction, action=Action.COMMIT))


def _row(key: int, version: int) -> Row:
    return {
        "ID": key,
        "NAME": f"Стол {key}",
        "PRICE": Decimal(key % 10_000 + version) / 100,
        "N": None if key % 5 == 0 else version,
        "AT": START + dt.timedelta(seconds=key),
        "CODE": f"C{key % 1000}",
    }


def _read(rows: Iterable[Sequence[Any]]) -> int:
    return sum(queue_row(row).typ for row in rows)


def _changed(rows: Iterable[Sequence[Any]], settings: ReadingSettings) -> int:
    return sum(len(changes) for changes, _ in _batches(rows, settings))


def _published(rows: Iterable[Sequence[Any]]) -> int:
    return sum(
        1 for changes, catalog in _batches(rows, READING) for _ in encode(XdsFormat(batch_size=128), changes, catalog)
    )


def _batches(rows: Iterable[Sequence[Any]], settings: ReadingSettings) -> Iterator[tuple[list[Change], Catalog]]:
    """The changes of as many images as the publisher takes at once."""
    committed = CommittedRows(SCHEMA, settings, spill=spill_to(QueueRow))
    images: list[Image] = []
    for image in committed.images(map(queue_row, rows)):
        images.append(image)
        if len(images) == BATCH:
            yield decide_images(images, committed.catalog, Options()).changes, committed.catalog
            images = []
    yield decide_images(images, committed.catalog, Options()).changes, committed.catalog


def _peaks(rows: int) -> dict[int, float]:
    """Megabytes that one transaction of so many rows takes at most, and one of four times as many."""
    return {size: _peak(size) for size in (rows, 4 * rows)}


def _peak(rows: int) -> float:
    """What Python allocates while nobody keeps the images; it is traced, for the process also holds the other rows."""
    emulator = LinterEmulator(SCHEMA, READING)
    inserts = (
        EmulatedOperation(transaction=1, action=Action.INSERT, table=NUMBER, after=_row(key, 1)) for key in range(rows)
    )
    ends = [EmulatedOperation(transaction=1, action=Action.COMMIT)]
    queued = (queue_row(astuple(row)) for done in chain(inserts, ends) for row in emulator.rows(done))
    settings = ReadingSettings(code_page="cp1251", spill_bytes=LIMIT)
    tracemalloc.start()
    told = sum(1 for _ in CommittedRows(SCHEMA, settings, spill=spill_to(QueueRow)).images(queued))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert told == rows
    return peak / 2**20


def _targets(timings: Timings, *, peaks: dict[int, float]) -> list[Target]:
    rate = timings["rows to changes"].rate
    least, most = sorted(peaks)
    return [
        Target(
            promise=f"{PROMISED:,} queue rows/s on one core, from rows to changes",
            measured=f"{rate:,.0f} rows/s",
            reached=rate >= PROMISED,
        ),
        Target(
            promise=f"a transaction of {most:,} rows takes at most {GROWTH:g} times the memory of one of {least:,}",
            measured=f"{peaks[least]:.1f} MB and {peaks[most]:.1f} MB, with spill_bytes = {LIMIT:,}",
            reached=peaks[most] <= GROWTH * peaks[least],
        ),
    ]
