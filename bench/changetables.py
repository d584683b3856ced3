"""How fast changes become rows of change tables: into PostgreSQL against a bare COPY, into Parquet, and masks alone."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.backlog import closed_at_the_end, temporary_folder
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.postgresql import url
from eventlog.core.model import Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.masks import bits_of_bytes, bits_of_hex, bits_to_bytes, bits_to_hex

if TYPE_CHECKING:
    from sqlalchemy import Engine

CHANGES: Final = 200_000
QUICK: Final = 2_000
MASKS: Final = 1_000_000
COPIED: Final = 0.5
PARQUET: Final = 250_000
MASKED: Final = 2_000_000
USR: Final = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(64)"),
        Column(name="lname", type="varchar(64)"),
        Column(name="born", type="date"),
        Column(name="pay", type="bigint"),
        Column(name="since", type="timestamp"),
        Column(name="active", type="boolean"),
    ),
)
FLOOR = "bare COPY of the finished rows"
OURS = "changes into PostgreSQL"
FILES = "changes into Parquet"
ENCODED = "changes into finished rows"
CODECS = ("bits to bytes", "bits of bytes", "bits to hex", "bits of hex")


def benchmark(*, quick: bool) -> Benchmark:
    """The same changes each time; a row is what is counted, so an update counts as two."""
    number = QUICK if quick else CHANGES
    changes = told(number)
    rows = sum(len(block.rows) for document in encoded(changes) for block in document.blocks)
    masks = QUICK if quick else MASKS
    return Benchmark(
        name="changetables",
        question="how fast do changes become rows of change tables?",
        unit="row",
        contestants=[
            Contestant(
                name=FLOOR, prepare=partial(finished, number), run=partial(copied, number), units=rows, floor=True
            ),
            Contestant(name=OURS, prepare=emptied, run=partial(stored, changes), units=rows),
            Contestant(name=ENCODED, run=partial(encoded, changes), units=rows),
            Contestant(name=FILES, run=partial(filed, changes), units=rows),
            *[Contestant(name=name, run=partial(masked, name, masks), units=masks) for name in CODECS],
        ],
        targets=_targets,
        note=(
            "Whole images of a table with seven columns as a stream hands them out: of four changes one inserts, two"
            " update, one deletes, in transactions of ten. Both ways into PostgreSQL write the same rows into the same"
            " change table, one transaction for 50,000 rows, and COPY takes them from Python in both. Parquet is written"
            " in documents of 50,000 rows, each durable with its description before the next. Masks have 40 columns."
        ),
    )


@cache
def told(number: int) -> list[Change]:
    """Changes as a stream tells them."""
    begin = dt.datetime(2026, 1, 1)
    made = []
    for place in range(number):
        if place % 10 == 0:
            transaction = Transaction(id=place + 1, time=begin + dt.timedelta(milliseconds=place))
        cells = {"fname": f"Jack {place}", "lname": f"Frost {place % 977}", "born": begin.date(), "pay": place}
        made.append(_change(place, transaction, {**cells, "since": begin, "active": place % 3 == 0}))
    return made


def _change(place: int, transaction: Transaction, cells: dict[str, Any]) -> Change:
    op = (Op.ADD, Op.MODIFY, Op.MODIFY, Op.DELETE)[place % 4]
    if op is Op.ADD:
        edits = [Edit(column=name, new=cell) for name, cell in cells.items()]
    elif op is Op.DELETE:
        edits = [Edit(column=name, old=cell) for name, cell in cells.items()]
    else:
        former = cells | {"fname": "Ida", "pay": 1}
        edits = [Edit(column=name, old=former[name], new=cell) for name, cell in cells.items()]
    return Change(
        row=RowId(None, "usr", f"idu={place}"),
        op=op,
        edits=tuple(edits),
        positions=((transaction.id, place, 0),),
        time=transaction.time,
        whole=True,
        transaction=transaction,
        stream=f"{transaction.id}:{place}",
    )


def encoded(changes: Sequence[Change]) -> list[RowsDocument]:
    """The finished rows."""
    documents = [one for one in encode(ChangeTableFormat(), changes, Catalog([USR])) if isinstance(one, RowsDocument)]
    if sum(len(one.covers) for one in documents) != len(changes):
        raise AssertionError("changes are missing")
    return documents


@cache
def finished(number: int) -> list[RowsDocument]:
    """The rows that the bare COPY has ready."""
    emptied()
    documents = encoded(told(number))
    if not all(block.rows for document in documents for block in document.blocks):  # put together here, not in the race
        raise AssertionError("rows are missing")
    return documents


@cache
def engine() -> Engine:
    """The benchmark's own server, with the change table in it."""
    from sqlalchemy import create_engine

    from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink

    made = closed_at_the_end(create_engine(url()))
    sink = DatabaseSink(DatabaseSettings(url=""), made)
    sink.open(None)
    sink.commit("", encoded(told(4)))
    return made


def emptied() -> None:
    """Takes the rows and the position away."""
    with engine().begin() as connection:
        connection.exec_driver_sql("TRUNCATE usr__ct")
        connection.exec_driver_sql("TRUNCATE eventlog_position")


def copied(number: int) -> None:
    """The same rows in the same transactions, and nothing else; what is there before goes first, and is not much."""
    session: Any = engine().raw_connection()
    try:
        cursor = session.cursor()
        cursor.execute("TRUNCATE usr__ct")
        for document in finished(number):
            with cursor.copy("COPY usr__ct FROM STDIN") as copy:
                for block in document.blocks:
                    for row in block.rows:
                        copy.write_row(row)
            session.commit()
    finally:
        session.close()


def stored(changes: Sequence[Change]) -> None:
    """From changes to durable rows."""
    from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink

    sink = DatabaseSink(DatabaseSettings(url=""), engine())
    sink.open(None)
    for document in encode(ChangeTableFormat(), changes, Catalog([USR]), sink.last()):
        if not isinstance(document, RowsDocument) or sink.commit("", [document]):
            raise AssertionError("a row was refused")


def filed(changes: Sequence[Change]) -> None:
    """From changes to durable files."""
    from eventlog.sinks.change_files.sink import ChangeTableFiles

    sink = ChangeTableFiles(_folder())
    sink.open(None)
    for document in encode(ChangeTableFormat(), changes, Catalog([USR]), sink.last()):
        if not isinstance(document, RowsDocument) or sink.commit("", [document]):
            raise AssertionError("a row was refused")


def _folder() -> Path:
    return temporary_folder()


def masked(name: str, number: int) -> None:
    """One codec, on masks of forty columns."""
    bits = [(1 << 47) - 1 - (place & 0xFFFF) for place in range(1000)]
    run: Any = {
        "bits to bytes": (bits_to_bytes, bits),
        "bits of bytes": (bits_of_bytes, [bits_to_bytes(one) for one in bits]),
        "bits to hex": (bits_to_hex, bits),
        "bits of hex": (bits_of_hex, [bits_to_hex(one) for one in bits]),
    }[name]
    codec, given = run
    for _ in range(number // 1000):
        for one in given:
            codec(one)


def _targets(timings: Timings) -> list[Target]:
    share = timings[OURS].rate / timings[FLOOR].rate
    slowest = min(timings[name].rate for name in CODECS)
    files = timings[FILES].rate
    return [
        Target(
            promise=f"into PostgreSQL at least {COPIED:g} times as fast as a bare COPY of the same finished rows",
            measured=f"{share:.2f} times",
            reached=share >= COPIED,
        ),
        Target(
            promise=f"{PARQUET:,} rows/s into Parquet on one core",
            measured=f"{files:,.0f} rows/s",
            reached=files >= PARQUET,
        ),
        Target(
            promise=f"{MASKED:,} masks/s, whichever codec",
            measured=f"{slowest:,.0f} masks/s",
            reached=slowest >= MASKED,
        ),
    ]
