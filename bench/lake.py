"""How fast changes get into tables of a lake, against the same rows as files of Parquet."""

from __future__ import annotations

import datetime as dt
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Final, Literal

from bench.backlog import temporary_folder
from bench.changetables import USR
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.core.model import Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog
from eventlog.core.seams import Sink, encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument

CHANGES: Final = 1_000_000
QUICK: Final = 2_000
PLANS: Final = 20
APPENDED: Final = 0.5
MERGED_SECONDS: Final = 180.0
FLOOR: Final = "the rows as files of Parquet"
KINDS: Final = ("delta", "iceberg")
_numbers = count()


def benchmark(*, quick: bool) -> Benchmark:
    """A quarter of the changes inserts rows; the others change these, each three times."""
    number = QUICK if quick else CHANGES
    rows = sum(len(block.positions) for document in finished(number) for block in document.blocks)
    ways: list[Contestant] = [
        Contestant(name=name(kind, mode), run=partial(put, kind, mode, number), units=rows)
        for mode in ("append", "mirror")
        for kind in KINDS
    ]
    return Benchmark(
        name="lake",
        question="how fast do changes get into tables of a lake?",
        unit="row",
        contestants=[
            Contestant(name=FLOOR, run=partial(filed, number), units=rows, floor=True),
            *ways,
        ],
        targets=partial(_targets, number),
        note=(
            "Finished rows of a table with seven columns, in 20 plans, each durable before the next, in local files. An"
            " update is two rows. Mirrors have a quarter as many rows as there are changes."
        ),
    )


def name(kind: str, mode: str) -> str:
    """What a way is called."""
    return f"{'appended to' if mode == 'append' else 'merged in'} {kind}"


@cache
def finished(number: int) -> list[RowsDocument]:
    """The rows, a document for each plan."""
    form = ChangeTableFormat(rows_of_a_document=10**9)
    made: list[RowsDocument] = []
    size = number // PLANS
    for begin in range(0, number, size):
        changes = [_change(place, number // 4) for place in range(begin, begin + size)]
        after = made[-1].id if made else ""
        made += [
            one for one in encode(form, changes, Catalog([USR]), after, whole=True) if isinstance(one, RowsDocument)
        ]
    if len(made) != PLANS:
        raise AssertionError("a plan is one document")
    return made


def _change(place: int, keys: int) -> Change:
    begin = dt.datetime(2026, 1, 1)
    adds = place < keys
    key = place if adds else place * 7919 % keys
    cells: dict[str, Any] = {
        "fname": f"Jack {place}",
        "lname": f"Frost {place % 977}",
        "born": begin.date(),
        "pay": place,
    }
    cells |= {"since": begin, "active": place % 3 == 0}
    former = cells | {"fname": "Ida", "pay": 1}
    edits = [
        Edit(column=one, new=cell) if adds else Edit(column=one, old=former[one], new=cell)
        for one, cell in cells.items()
    ]
    transaction = Transaction(id=place // 10 + 1, time=begin + dt.timedelta(milliseconds=place // 10))
    return Change(
        row=RowId(None, "usr", f"idu={key}"),
        op=Op.ADD if adds else Op.MODIFY,
        edits=tuple(edits),
        positions=((transaction.id, place, 0),),
        time=transaction.time,
        whole=True,
        transaction=transaction,
    )


def filed(number: int) -> None:
    """The same rows as files."""
    from eventlog.sinks.change_files.sink import ChangeTableFiles

    _committed(ChangeTableFiles(_folder()), number)


def put(kind: str, mode: Literal["append", "mirror"], number: int) -> None:
    """The rows into tables of this kind."""
    from eventlog.core.plugins import SinkOrder
    from eventlog.sinks.lake.plugin import DELTA, ICEBERG, DeltaOutput, IcebergOutput

    folder = _folder()
    if kind == "delta":
        made = DELTA.build(SinkOrder(output=DeltaOutput(path=str(folder), mode=mode), format=ChangeTableFormat()))
    else:
        catalog = {"type": "sql", "uri": f"sqlite:///{folder / 'catalog.db'}"}
        output = IcebergOutput(path=str(folder), mode=mode, catalog=catalog)
        made = ICEBERG.build(SinkOrder(output=output, format=ChangeTableFormat()))
    _committed(made, number)


def _committed(sink: Sink, number: int) -> None:
    sink.open(None)
    for plan, document in enumerate(finished(number)):
        sink.prepare(str(plan), [document])
        if sink.commit(str(plan), [document]):
            raise AssertionError("a row was refused")
    sink.close()


def _folder() -> Path:
    folder = temporary_folder() / str(next(_numbers))
    folder.mkdir()
    return folder


def _targets(number: int, timings: Timings) -> list[Target]:
    found = []
    for kind in KINDS:
        share = timings[name(kind, "append")].rate / timings[FLOOR].rate
        found.append(
            Target(
                promise=f"appended to {kind} at least {APPENDED:g} times as fast as the same rows get into Parquet",
                measured=f"{share:.2f} times",
                reached=share >= APPENDED,
            )
        )
    for kind in KINDS:
        seconds = timings[name(kind, "mirror")].median
        found.append(
            Target(
                promise=f"{number:,} changes merged in {kind} within {MERGED_SECONDS:g} s",
                measured=f"{seconds:.0f} s",
                reached=seconds <= MERGED_SECONDS,
            )
        )
    return found
