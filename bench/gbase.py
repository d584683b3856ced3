"""How fast a GBase stream becomes changes, what of that is decoding, and whether a long stream takes more memory."""

from __future__ import annotations

import datetime as dt
import resource
import struct
from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Final

from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.core.model import Change, Edit, Image, Op, RowId, Transaction, Value
from eventlog.core.rules import Options
from eventlog.sources.gbase.images import IMAGE_BYTES, images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.reader import RecordReader
from eventlog.sources.gbase.records import FIELDS, LEAST, ROWS, SCHEME, CdcRecord, frames
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.images import decide_images
from eventlog_streams_tools.gbase.emulator import GBASE, record, row_record, table_record

PROMISED: Final = 150_000
PART: Final = 0.35
GROWTH: Final = 1.1
LONG: Final = 2 << 30
ROWS_OF_TRANSACTION: Final = 100
CHUNK: Final = 65_536
LAYOUT: Final = layout_of(
    111,
    "id integer, serial_no bigint, amount decimal(12,2), at datetime year to second, day date, ok boolean, rate float,"
    " kind char(8), name varchar(40,0), note lvarchar(200)",
)
OWN: Final = GBaseSettings(tables={"111": "shop.t1"}, keys={"shop.t1": ("id",)})
_headers = {
    number: struct.Struct(">4I" + "".join(field.form for field in fields)).unpack_from
    for number, fields in FIELDS.items()
}
Peaks = dict[str, float]


def benchmark(*, quick: bool) -> Benchmark:
    """From bytes, as reads of 64 KB, to changes; the floor unpacks every header and skips what follows it."""
    rows = 2_000 if quick else 100_000
    data = stream(rows)
    peaks: Peaks = {}
    long = len(data) * 2 if quick else LONG
    remember = partial(endless, data, long, peaks)
    return Benchmark(
        name="gbase",
        question="how fast does a GBase stream become changes?",
        unit="row",
        contestants=[
            Contestant(name="headers alone", run=partial(headers, data), units=rows, floor=True),
            Contestant(name="records cut and checked", run=partial(cut, data), units=rows),
            Contestant(name="changes of no values", run=partial(bare, data, 0), units=rows),
            Contestant(
                name="changes of one row's values", run=partial(bare, data, len(LAYOUT.columns) - 1), units=rows
            ),
            Contestant(name="images", run=partial(decoded, data), units=rows),
            Contestant(name="changes", prepare=remember, run=partial(changes, data), units=rows),
        ],
        targets=partial(_targets, peaks=peaks),
        note=(
            f"One table of ten mixed columns, transactions of {ROWS_OF_TRANSACTION} rows, inserts and updates in turn;"
            f" the long stream has {long / 2**30:.2f} GiB. The floor unpacks the fields of every header, sizes too. No loop in"
            " Python that ends in changes comes below two others: both cut records, hold transactions and make an image and"
            " a change of each, and read nothing of the rows; one leaves edits out, one repeats those of one row."
        ),
    )


def stream(rows: int) -> bytes:
    """A stream of that many row records."""
    parts = [table_record(LAYOUT)]
    seq = 0
    for number in range(rows):
        if number % ROWS_OF_TRANSACTION == 0:
            seq += 8
            parts.append(record(CdcRecord.BEGINTX, seq, 7, 1_742_727_439, 2005))
        seq += 8
        place = number % 4
        kind = (CdcRecord.INSERT, CdcRecord.INSERT, CdcRecord.UPDBEF, CdcRecord.UPDAFT)[place]
        parts.append(row_record(kind, seq, 7, LAYOUT, _row(number - (place == 3), number), GBASE))
        if number % ROWS_OF_TRANSACTION == ROWS_OF_TRANSACTION - 1:
            seq += 8
            parts.append(record(CdcRecord.COMMTX, seq, 7, 1_742_727_440))
    return b"".join(parts)


def _row(key: int, number: int) -> dict[str, Value]:
    return {
        "id": key,
        "serial_no": number * 1_000_003,
        "amount": Decimal(number * 7919 % 10**9).scaleb(-2),
        "at": dt.datetime(2025, 3, 23, 10, 57, 19) + dt.timedelta(seconds=number),
        "day": dt.date(2025, 3, 23) + dt.timedelta(days=number % 900),
        "ok": number % 3 == 0,
        "rate": number / 7,
        "kind": "abcdefgh",
        "name": f"name {number}",
        "note": None if number % 10 == 0 else f"a note on {number}",
    }


def headers(data: bytes) -> int:
    """Unpacks every header in one buffer and skips every payload, without a check that could fail."""
    common, rows = struct.Struct(">4I").unpack_from, 0
    at, end = 0, len(data)
    while at < end:
        header, payload, scheme, number = common(data, at)
        assert scheme == SCHEME
        _headers[number](data, at)
        if number in ROWS:
            struct.unpack_from(f"<{(header - LEAST[number]) // 4}I", data, at + LEAST[number])
            rows += 1
        at += header + payload
    return rows


def cut(data: bytes) -> int:
    """What the framer does, in reads of 64 KB."""
    return sum(len(found) for found in frames(chunks(data)))


def bare(data: bytes, columns: int) -> int:
    """Images and changes as they must be, with that many edits, all of them of one and the same row."""
    records = RecordReader(OWN)
    row = dict(list(_row(1, 1).items())[1:][:columns])
    names, op, update, told = [*row], Op.ADD, int(CdcRecord.UPDBEF), 0
    kept: list[Change] = []  # as many as a batch has: what is forgotten at once costs less
    for found in frames(chunks(data)):
        for committed in records.read(found):
            transaction = Transaction(id=committed.seq, time=committed.time)
            for place, (_, seq, _, frame) in enumerate(committed.items, 1):
                if frame.number == update:
                    continue
                position = (committed.seq, seq, 0)
                image = Image(position=position, op=op, table="t1", after=row, transaction=transaction, place=place)
                edits = tuple([Edit(column=name, new=row[name]) for name in names])
                change = Change(row=RowId("shop", "t1", "id=1"), op=op, edits=edits, positions=(image.position,))
                kept.append(change)
            if len(kept) >= IMAGE_BYTES:
                told, kept = told + len(kept), []
    return told + len(kept)


def decoded(data: bytes) -> int:
    """Everything up to images."""
    return sum(len(batch.images) for batch in images(chunks(data), OWN))


def changes(data: bytes) -> int:
    """Everything up to changes."""
    return _told(chunks(data))


def endless(data: bytes, length: int, peaks: Peaks) -> None:
    """Once, the same stream over and over up to a length, and the process's peaks before and after; not measured."""
    if "after" not in peaks:
        changes(data)
        peaks["before"] = _peak()
        _told(chunk for _ in range(length // len(data)) for chunk in chunks(data))
        peaks["after"] = _peak()


def chunks(data: bytes) -> Iterator[bytes]:
    """Reads of 64 KB."""
    for at in range(0, len(data), CHUNK):
        yield data[at : at + CHUNK]


def _told(pieces: Iterator[bytes]) -> int:
    options = Options()
    return sum(len(decide_images(batch.images, batch.catalog, options).changes) for batch in images(pieces, OWN))


def _peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _targets(timings: Timings, *, peaks: Peaks) -> list[Target]:
    rate = timings["changes"].rate
    part = rate / timings["headers alone"].rate
    return [
        Target(
            promise=f"{PROMISED:,} row records/s on one core, from bytes to changes",
            measured=f"{rate:,.0f} rows/s",
            reached=rate >= PROMISED,
        ),
        Target(
            promise=f"at least {PART:g} times the rate of a loop that unpacks headers only",
            measured=f"{part:.2f} times",
            reached=part >= PART,
        ),
        Target(
            promise=f"a stream of 2 GiB takes at most {GROWTH:g} times the memory of a short one",
            measured=f"{peaks['after']:.0f} MB after, {peaks['before']:.0f} MB before",
            reached=peaks["after"] <= GROWTH * peaks["before"],
        ),
    ]
