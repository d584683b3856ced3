"""A stream to try things on: a log that is written by hand, and its records in both dialects.

Sequence numbers look like a server's: log 11, pages of 4096 bytes with a header of 24, records at
multiples of 4. The shop at the end changes its rows at random: interleaved transactions,
savepoints, rollbacks, all sorts of rows.
"""

from __future__ import annotations

import datetime as dt
import random
import struct
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain, islice, repeat
from typing import Final, Literal

from msgspec import Struct

from eventlog.core.model import Value
from eventlog.sources.gbase.layout import CapturedLayout, layout_of
from eventlog.sources.gbase.records import COMMON_BYTES, FIELDS, SCHEME, CdcRecord
from eventlog.sources.gbase.values import TextRules, codec


class RecordDialect(Struct, frozen=True, kw_only=True):
    """How a server writes: the byte order of the sizes, how wide a varchar's length is, its code
    set.
    """

    sizes: Literal["little", "big"] = "little"
    wide: bool = True
    texts: TextRules = TextRules()


GBASE: Final = RecordDialect()
"""Newer GBase 8s, opened with minor version 0."""
INFORMIX: Final = RecordDialect(sizes="big", wide=False)
"""Informix, opened with version (1, 1)."""


def record(number: CdcRecord, *fields: int, sizes: bytes = b"", payload: bytes = b"") -> bytes:
    """Write one record; `fields` in the order of its header."""
    forms = "".join(field.form for field in FIELDS[number])
    header = struct.pack(f">{forms}", *fields) + sizes
    return struct.pack(">4I", COMMON_BYTES + len(header), len(payload), SCHEME, number) + header + payload


def table_record(layout: CapturedLayout) -> bytes:
    text = ", ".join(f"{_quote(column.name)} {column.written}" for column in layout.columns)
    numbers = (layout.label, 0, layout.fixed_bytes, len(layout.fixed), len(layout.varying))
    return record(CdcRecord.TABSCHEM, *numbers, payload=text.encode() + b"\0")


def row_record(
    number: CdcRecord,
    seq: int,
    tx: int,
    layout: CapturedLayout,
    values: Mapping[str, Value],
    dialect: RecordDialect = GBASE,
) -> bytes:
    """Write a record with a row; raise OverflowError for a value too large for its column."""
    parts = [
        codec(column.type, dialect.texts, wide=dialect.wide).encode(values[column.name])
        for column in (*layout.fixed, *layout.varying)
    ]
    order = "<" if dialect.sizes == "little" else ">"
    sizes = [len(part) for part in parts[len(layout.fixed) :]]
    return record(
        number,
        seq,
        tx,
        layout.label,
        0,
        sizes=struct.pack(f"{order}{len(sizes)}I", *sizes),
        payload=b"".join(parts),
    )


def _quote(name: str) -> str:
    if name.replace("_", "a").isalnum():
        return name
    return '"' + name.replace('"', '""') + '"'


FIRST_SEQ = 11 << 32 | 0x1746018
START_TIME = 1_742_727_439

Written = tuple[CdcRecord, int, int, str, Mapping[str, Value]]
"""An entry of the log: what it is, its sequence number, the transaction, the table and the row."""


class GBaseEmulator:
    """One logical log with the changes of tables, whose columns are as TABSCHEM writes them."""

    def __init__(self, *, wide: bool = True, texts: TextRules | None = None) -> None:
        self.log: list[Written] = []
        self.tables: dict[str, str] = {}
        self.wide = wide
        self.texts = texts or TextRules()
        self.time = START_TIME
        self._seq = FIRST_SEQ
        self._tx = 38

    def create(self, table: str, columns: str) -> None:
        """Makes a table such as `stores:informix.t1` with columns as TABSCHEM writes them."""
        layout_of(0, columns)
        self.tables[table] = columns

    def begin(self, user: int = 2005) -> int:
        self._tx += 1
        self._write(CdcRecord.BEGINTX, self._tx, step=0x38, row={"user": user})
        return self._tx

    def row(self, number: CdcRecord, tx: int, table: str, values: Mapping[str, Value]) -> int:
        """Writes a row's record, or one without values for TRUNCATE.

        Its sequence number is that of a savepoint before it.
        """
        return self._write(number, tx, table=table, row=dict(values))

    def update(
        self,
        tx: int,
        table: str,
        before: Mapping[str, Value],
        after: Mapping[str, Value],
    ) -> int:
        seq = self.row(CdcRecord.UPDBEF, tx, table, before)
        self.row(CdcRecord.UPDAFT, tx, table, after)
        return seq

    def discard(self, tx: int, seq: int) -> None:
        """Takes back what the transaction did from that sequence number on."""
        self.log.append((CdcRecord.DISCARD, seq, tx, "", {}))

    def end(self, tx: int, *, commit: bool = True) -> int:
        """Commits the transaction or rolls it back."""
        self.time += 1
        ending = CdcRecord.COMMTX if commit else CdcRecord.RBTX
        return self._write(ending, tx, row={"time": self.time})

    def record(
        self,
        written: Written,
        captured: Mapping[str, CapturedLayout],
        dialect: RecordDialect,
    ) -> bytes:
        """Write an entry of the log for a capture of these tables; empty for other tables."""
        number, seq, tx, table, row = written
        match number:
            case CdcRecord.BEGINTX:
                return record(number, seq, tx, self.time, int(str(row["user"])))
            case CdcRecord.COMMTX:
                return record(number, seq, tx, int(str(row["time"])))
            case CdcRecord.RBTX | CdcRecord.DISCARD:
                return record(number, seq, tx)
        layout = captured.get(table)
        if layout is None:
            return b""
        if number is CdcRecord.TRUNCATE:
            return record(number, seq, tx, layout.label)
        return row_record(number, seq, tx, layout, row, dialect)

    def _write(
        self,
        number: CdcRecord,
        tx: int,
        *,
        table: str = "",
        row: Mapping[str, Value] | None = None,
        step: int = 0x50,
    ) -> int:
        seq = self._seq
        self.log.append((number, seq, tx, table, row or {}))
        self._seq += step
        if self._seq & 0xFFF < 0x18:  # a new page begins with its header
            self._seq = (self._seq & ~0xFFF) + 0x18
        return seq


CUSTOMER: Final = "stores:shop.customer"
PURCHASE: Final = "stores:shop.purchase"
COLUMNS: Final = {
    CUSTOMER: "id serial, born date, active boolean, kind char(4), name varchar(40,0), note lvarchar(200)",
    PURCHASE: "id int8, customer integer, price decimal(10,2), weight float, at datetime year to fraction(3),"
    " lasting interval day(3) to minute, place varchar(60,0)",
}
LABELS: Final = {1: CUSTOMER, 2: PURCHASE}
_READ_RECORDS: Final = 256
"""Records that a server gives with one read at most."""
_DAY: Final = dt.datetime(2025, 3, 23)
Row = dict[str, Value]


def shop(
    rows: int,
    seed: int = 1,
    *,
    wide: bool = True,
    emulator: GBaseEmulator | None = None,
) -> GBaseEmulator:
    """Fill an emulator's log with so many changed rows, in committed and other transactions."""
    dice = random.Random(seed)  # noqa: S311  # the same stream for the same number
    emulator = emulator or GBaseEmulator(wide=wide)
    for table, columns in COLUMNS.items():
        emulator.create(table, columns)
    here: dict[str, list[Row]] = {CUSTOMER: [], PURCHASE: []}
    # Three at once, so that records of transactions lie between each other's.
    open_ones = [emulator.begin(2000 + at) for at in range(3)]
    for number in range(1, rows + 1):
        tx = dice.choice(open_ones)
        table = dice.choice([CUSTOMER, PURCHASE])
        _change(emulator, tx, table, here[table], number, dice)
        if dice.random() < 0.05:
            # A row that a savepoint takes back, or a transaction that is rolled back.
            if dice.random() < 0.5:
                emulator.discard(tx, emulator.row(CdcRecord.INSERT, tx, table, _row(table, -number, dice)))
            else:
                other = emulator.begin()
                emulator.row(CdcRecord.INSERT, other, table, _row(table, -number, dice))
                emulator.end(other, commit=False)
        if dice.random() < 0.2:
            emulator.end(tx)
            open_ones[open_ones.index(tx)] = emulator.begin(2000 + number % 7)
    for tx in open_ones:
        emulator.end(tx)
    return emulator


def reads(
    emulator: GBaseEmulator,
    *,
    cut: int = 65_536,
    minor: int = 0,
    beats: int = 2,
) -> Iterator[bytes]:
    """Yield the reads of a client capturing everything from the beginning; `beats` heartbeats end
    it.
    """
    dialect = RecordDialect(sizes="big" if minor else "little", wide=emulator.wide, texts=emulator.texts)
    captured = {table: layout_of(label, COLUMNS[table]) for label, table in LABELS.items()}
    written = (emulator.record(entry, captured, dialect) for entry in emulator.log)
    # What is not captured has no bytes, and no record.
    records = filter(None, chain(map(table_record, captured.values()), written))
    answers = iter(lambda: b"".join(islice(records, _READ_RECORDS)), b"")
    last_seq = emulator.log[-1][1] if emulator.log else 0
    heartbeat = record(CdcRecord.TIMEOUT, last_seq)
    for answer in chain(answers, repeat(heartbeat, beats)):
        for start in range(0, len(answer), cut):
            yield answer[start : start + cut]


def buffers(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield each read in a reused buffer, with bytes of earlier reads behind it."""
    buffer = bytearray()
    for piece in pieces:
        buffer[: len(piece)] = piece
        yield bytes(buffer)


def _change(
    emulator: GBaseEmulator,
    tx: int,
    table: str,
    rows: list[Row],
    number: int,
    dice: random.Random,
) -> None:
    act = dice.random()
    if not rows or act < 0.5:
        rows.append(_row(table, number, dice))
        emulator.row(CdcRecord.INSERT, tx, table, rows[-1])
    elif act < 0.85:
        at = dice.randrange(len(rows))
        # The key stays, or the reader would make a delete and an insert of it.
        after = {**_row(table, number, dice), "id": rows[at]["id"]}
        emulator.update(tx, table, rows[at], after)
        rows[at] = after
    else:
        emulator.row(CdcRecord.DELETE, tx, table, rows.pop(dice.randrange(len(rows))))


def _row(table: str, number: int, dice: random.Random) -> Row:
    if table == CUSTOMER:
        return {
            "id": number,
            "born": dice.choice([None, dt.date(1970, 1, 1) + dt.timedelta(dice.randrange(20_000))]),
            "active": dice.choice([True, False, None]),
            "kind": dice.choice(["priv", "corp"]),
            "name": dice.choice(["Jack Frost", "李雷", "Zoë", ""]),
            "note": dice.choice([None, "a note", "x" * dice.randrange(150)]),
        }
    return {
        "id": number,
        "customer": dice.randrange(1000),
        "price": Decimal(dice.randrange(-100_000, 10_000_000)).scaleb(-2),
        "weight": dice.choice([None, dice.random()]),
        "at": _DAY + dt.timedelta(milliseconds=dice.randrange(10**9)),
        "lasting": dice.choice([None, f"{dice.randrange(300)} {dice.randrange(24):02d}:30"]),
        "place": dice.choice([None, "Oslo", "北京"]),
    }
