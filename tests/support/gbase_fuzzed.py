"""What must hold for any bytes: they are read alike however they are cut; what a row says reads the same when written again."""

from __future__ import annotations

import struct

from eventlog.core.errors import DataError
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.rows import FIXED_HEADER_BYTES, GBaseRowReader
from eventlog.sources.gbase.values import TextRules
from eventlog_streams_tools.gbase.emulator import row_record
from tests.support.gbase_streams import before_damage

TYPED = layout_of(
    6,
    "a smallint, b integer, c bigint, d int8, e decimal(16,2), f money(8,3), g date, h datetime year to fraction(5),"
    " i datetime year to second, k char(5), l smallfloat, m float, n boolean, o interval day(3) to second,"
    " p decimal(5), q varchar(20,0), r lvarchar(200)",
)
"""A table with a column of every kind."""
HEADER = FIXED_HEADER_BYTES + 4 * len(TYPED.varying)
STEPS = (1, 7, 1000)
_reader = GBaseRowReader(TYPED, TextRules())


def read_alike(data: bytes) -> None:
    """Check that a stream gives the same images and damage in pieces of any length."""
    whole = _read(data, max(len(data), 1))
    for step in STEPS:
        assert _read(data, step) == whole, f"in pieces of {step} bytes it is read otherwise"


def row_reads_again(data: bytes) -> None:
    """Check that a row's values, written again, are read the same; or that it is refused as
    DataError.
    """
    try:
        values = _reader(row_of(data), HEADER)
    except DataError:
        return
    try:
        written = row_record(CdcRecord.INSERT, 2, 7, TYPED, values)
    except (OverflowError, ValueError):
        return  # bytes that say more than the type has room for, which no server writes
    again = _reader(written, HEADER)
    assert all(again[name] == value or repr(again[name]) == repr(value) for name, value in values.items())  # NaN, too


def row_of(data: bytes) -> bytes:
    """Make a record of fitting sizes: fixed columns, size of the first varying one, both of these."""
    fixed, rest = data[: TYPED.fixed_bytes].ljust(TYPED.fixed_bytes, b"\0"), data[TYPED.fixed_bytes + 1 :]
    first = min(data[TYPED.fixed_bytes], len(rest)) if len(data) > TYPED.fixed_bytes else 0
    return bytes(FIXED_HEADER_BYTES) + struct.pack(">2I", first, len(rest) - first) + fixed + rest


def _read(data: bytes, step: int) -> tuple[str, str]:
    """Read the images and the error at the end."""
    images, error = before_damage(data[at : at + step] for at in range(0, len(data), step))
    said = "" if error is None else str(error)
    assert (error is None) == (not said), "an error says nothing"
    return repr(images), said
