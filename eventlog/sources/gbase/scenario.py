"""A shop that changes its rows at random, in the emulator: interleaved transactions, savepoints, rollbacks, all sorts of rows."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Final

from eventlog.core.model import Value
from eventlog.sources.gbase.emulator import Emulator
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import Record

CUSTOMER: Final = "stores:shop.customer"
PURCHASE: Final = "stores:shop.purchase"
COLUMNS: Final = {
    CUSTOMER: "id serial, born date, active boolean, kind char(4), name varchar(40,0), note lvarchar(200)",
    PURCHASE: "id int8, customer integer, price decimal(10,2), weight float, at datetime year to fraction(3),"
    " lasting interval day(3) to minute, place varchar(60,0)",
}
LABELS: Final = {1: CUSTOMER, 2: PURCHASE}
_DAY: Final = dt.datetime(2025, 3, 23)
Row = dict[str, Value]


def shop(rows: int, seed: int = 1, *, wide: bool = True) -> Emulator:
    """An emulator whose log holds that many changed rows in committed and other transactions."""
    dice = random.Random(seed)  # noqa: S311  # the same stream for the same number
    emulator = Emulator(wide=wide)
    for table, columns in COLUMNS.items():
        emulator.create(table, columns)
    here: dict[str, list[Row]] = {CUSTOMER: [], PURCHASE: []}
    open_ones = [emulator.begin(2000 + at) for at in range(3)]
    for number in range(1, rows + 1):
        tx = dice.choice(open_ones)
        table = dice.choice([CUSTOMER, PURCHASE])
        _change(emulator, tx, table, here[table], number, dice)
        if dice.random() < 0.05:
            _take_back(emulator, tx, table, number, dice)
        if dice.random() < 0.2:
            emulator.end(tx)
            open_ones[open_ones.index(tx)] = emulator.begin(2000 + number % 7)
    for tx in open_ones:
        emulator.end(tx)
    return emulator


def reads(emulator: Emulator, *, cut: int = 65_536, minor: int = 0, beats: int = 2) -> Iterator[bytes]:
    """What a client reads that captures everything from the beginning: `beats` heartbeats end it."""
    session = emulator.opensess("emulated", 0, 0, 256, 1, minor)
    for label, table in LABELS.items():
        emulator.set_fullrowlogging(table, 1)
        names = ",".join(column.name for column in layout_of(label, COLUMNS[table]).columns)
        emulator.startcapture(session, 0, table, names, label)
    emulator.activatesess(session, 1)
    while True:
        idle = emulator.idle(session)
        beats -= idle
        if beats < 0:
            return
        yield emulator.read(session, cut)


def buffers(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Each read as a buffer that is used again and again shows it: behind the bytes those of earlier reads."""
    buffer = bytearray()
    for piece in pieces:
        buffer[: len(piece)] = piece
        yield bytes(buffer)


def _change(emulator: Emulator, tx: int, table: str, rows: list[Row], number: int, dice: random.Random) -> None:
    act = dice.random()
    if not rows or act < 0.5:
        rows.append(_row(table, number, dice))
        emulator.row(Record.INSERT, tx, table, rows[-1])
    elif act < 0.85:
        at = dice.randrange(len(rows))
        after = {**_row(table, number, dice), "id": rows[at]["id"]}
        emulator.update(tx, table, rows[at], after)
        rows[at] = after
    else:
        emulator.row(Record.DELETE, tx, table, rows.pop(dice.randrange(len(rows))))


def _take_back(emulator: Emulator, tx: int, table: str, number: int, dice: random.Random) -> None:
    """A row that a savepoint takes back, or a transaction that is rolled back."""
    if dice.random() < 0.5:
        emulator.discard(tx, emulator.row(Record.INSERT, tx, table, _row(table, -number, dice)))
        return
    other = emulator.begin()
    emulator.row(Record.INSERT, other, table, _row(table, -number, dice))
    emulator.end(other, commit=False)


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
