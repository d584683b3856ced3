"""What tests of LINTER's queue share: the table of the specification's example, and queue rows made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from eventlog.core.model import Image, Row
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.linter.images import CommittedRows
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.rows import COLUMNS, QueueRow, queue_row
from eventlog.sources.linter.settings import ReadingSettings
from eventlog_streams_tools.linter.emulator import EmulatedOperation, EmulatorSettings, LinterEmulator

NUMBER = 17
T = Table(
    name="T",
    schema="SHOP",
    number=NUMBER,
    columns=(
        Column(name="ID", type="int", key=1),
        Column(name="NAME", type="varchar(20)"),
        Column(name="PRICE", type="decimal"),
        Column(name="N", type="smallint"),
    ),
)
WIDE = Table(
    name="WIDE",
    number=18,
    columns=(Column(name="ID", type="int", key=1), Column(name="B", type="varbyte(4000)")),
)
PICTURED = Table(
    name="PICTURED",
    number=19,
    columns=(
        Column(name="ID", type="int", key=1),
        Column(name="PHOTO", type="blob"),
        Column(name="NAME", type="char(5)"),
    ),
)
SCHEMA = Catalog([T, WIDE, PICTURED])
READING = ReadingSettings(code_page="cp1251")

TABLE: Row = {"ID": 7, "NAME": "Стол", "PRICE": Decimal("12345.678"), "N": None}
CHAIR: Row = {"ID": 7, "NAME": "Стул", "PRICE": Decimal(12300), "N": 5}
OLD = bytes.fromhex("08 07000000 0400 d1f2eeeb 02 000000000000000123456780000000 0000")
NEW = bytes.fromhex("00 07000000 0400 d1f2f3eb 02 000000000000000123000000000000 0500")
"""The record images that the specification computes for the two rows above."""

ROW = QueueRow(
    oper_date=bytes.fromhex("4055836e8000"),
    extdata=0,
    dbnode="SOURCE",
    transact_id=5,
    syslog_addr=12884978240,
    typ=3,
    blobatr=0,
    channel=6,
    tabnum_src=NUMBER,
    rowid_src=3,
    len1=len(OLD),
    len2=len(NEW),
    dst_server="REMOTE",
    dst_owner="SYSTEM",
    dst_table="T",
    data=OLD + NEW,
)
"""The queue row of the specification's example."""


def row_of(columns: Mapping[str, Any], code_page: str = "ascii") -> QueueRow:
    """Make a row from values by documented column names; a missing one is NULL."""
    return queue_row([columns.get(name) for name in COLUMNS], code_page)


def row(**other: Any) -> QueueRow:
    return replace(ROW, **other)


def commit(addr: int = ROW.syslog_addr + 100, typ: int = 4, **other: Any) -> QueueRow:
    return row(**{"typ": typ, "syslog_addr": addr, "len1": 0, "len2": 0, "data": b"", "tabnum_src": 0, **other})


def told(rows: Iterable[QueueRow], reports: list[str] | None = None, **settings: Any) -> list[Image]:
    """Read the images of the rows; reports are appended to the list."""
    reading = replace(READING, **settings)
    found: list[str] = [] if reports is None else reports
    return list(CommittedRows(SCHEMA, reading, found.append).images(rows))


def insert(tx: int, key: int, name: str = "Стол") -> EmulatedOperation:
    after = {**TABLE, "ID": key, "NAME": name}
    return EmulatedOperation(transaction=tx, action=Action.INSERT, table=NUMBER, rowid=key, after=after)


def ended(tx: int, action: Action = Action.COMMIT) -> EmulatedOperation:
    return EmulatedOperation(transaction=tx, action=action)


def queued(
    done: Iterable[EmulatedOperation], settings: EmulatorSettings | None = None, reading: ReadingSettings = READING
) -> list[QueueRow]:
    """Return the queue rows of the operations."""
    emulator = LinterEmulator(SCHEMA, reading, settings)
    return [one for each in done for one in emulator.rows(each)]
