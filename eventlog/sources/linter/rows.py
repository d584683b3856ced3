"""One row of DISPATCH_QUEUE, and what its columns mean: times, addresses in the system log, names.

Does no I/O.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from struct import Struct as Layout
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import Struct

from eventlog.core.errors import ConfigError, DataError, shorten

COLUMNS: Final = (
    "OPER_DATE",
    "EXTDATA",
    "DBNODE",
    "TRANSACT_ID",
    "SYSLOG_ADDR",
    "TYP",
    "BLOBATR",
    "CHANNEL",
    "TABNUM_SRC",
    "ROWID_SRC",
    "LEN1",
    "LEN2",
    "DST_SERVER",
    "DST_OWNER",
    "DST_TABLE",
    "DATA",
)
"""The documented columns in their order."""

BINARY: Final = frozenset({"OPER_DATE", "DATA"})
TEXTS: Final = frozenset({"DBNODE", "DST_SERVER", "DST_OWNER", "DST_TABLE"})
DATA_BYTES: Final = 3400
"""How many bytes DATA holds."""

# The zone is not stated; see `utc_reader`.
EPOCH: Final = dt.datetime(1990, 1, 1)
_WORD: Final = 0xFFFF
_HALF: Final = 0xFFFF_FFFF
_WHOLE: Final = 0xFFFF_FFFF_FFFF_FFFF
# The only column of which a byte order is documented (linter-dispatch-queue.md 1).
_date = Layout(">IH")
_second = dt.timedelta(seconds=1)


class QueueRow(Struct, frozen=True, array_like=True, gc=False):
    """One row of the queue; numbers that are unsigned there are unsigned here, names have lost
    their padding.
    """

    oper_date: bytes
    extdata: int
    dbnode: str
    transact_id: int
    syslog_addr: int
    typ: int
    blobatr: int
    channel: int
    tabnum_src: int
    rowid_src: int
    len1: int
    len2: int
    dst_server: str
    dst_owner: str
    dst_table: str
    data: bytes

    @property
    def destination(self) -> tuple[str, str, str]:
        return self.dst_server, self.dst_owner, self.dst_table

    @property
    def blob(self) -> tuple[int, int]:
        """Return the column a BLOB operation is for, from 1, and the BLOB's type."""
        # Of a number without a sign: a signed one would give another type (linter-dispatch-
        # queue.md 7).
        return self.blobatr & 0xFF, self.blobatr >> 8


def queue_row(values: Sequence[Any], code_page: str = "ascii") -> QueueRow:
    """Make a row from a driver's values, in the order of COLUMNS.

    SQL's integers are signed; NULL is 0 or empty. DATA is cut at the row's own lengths: the rest is
    padding.
    """
    date, extdata, node, tx, addr, typ, blobatr, channel, table, rowid, len1, len2, server, owner, name, data = values
    names = _names(code_page)
    try:
        # NULL is nothing: a COMMIT has no parts.
        if type(data) is not bytes:
            data = octets(data)
        len1, len2 = len1 or 0, len2 or 0
        # DATA has a fixed size, so what lies behind the lengths is padding or rubbish (linter-
        # dispatch-queue.md 1). Negative ones are damage, which keeps all of it.
        if len1 >= 0 and len2 >= 0 and len1 + len2 < len(data):
            data = data[: len1 + len2]
        return QueueRow(
            date if type(date) is bytes else octets(date),
            extdata or 0,
            names[node or ""],
            # SQL's integers are signed, and these are numbers of the log without a sign.
            tx & _WHOLE,
            addr & _WHOLE,
            typ,
            (blobatr or 0) & _WORD,
            channel or 0,
            table or 0,
            (rowid or 0) & _HALF,
            len1,
            len2,
            names[server or ""],
            names[owner or ""],
            names[name or ""],
            data,
        )
    except TypeError:
        # A driver's own kind of bytes, which no dictionary of names takes.
        if any(isinstance(value, bytearray | memoryview) for value in values):
            return queue_row([bytes(v) if isinstance(v, bytearray | memoryview) else v for v in values], code_page)
        raise DataError(f"A queue row has no usable numbers: TRANSACT_ID {tx!r}, SYSLOG_ADDR {addr!r}, …") from None


def octets(value: object) -> bytes:
    """Read a binary column given as bytes, a buffer or hex digits."""
    if value is None:
        return b""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    try:
        return bytes.fromhex(str(value))
    except ValueError:
        raise DataError(f"{shorten(str(value), 40)!r} is not binary data in hexadecimal.") from None


def oper_time(raw: bytes) -> dt.datetime:
    """Decode OPER_DATE: seconds since 1990 and their 65536ths, unsigned, big-endian."""
    if len(raw) != _date.size:
        raise DataError(f"OPER_DATE has {len(raw)} bytes and not {_date.size}.")
    seconds, fraction = _date.unpack(raw)
    minute, second = divmod(seconds, 60)
    # 65536ths as microseconds: 1,000,000 / 65,536 = 15,625 / 1,024.
    return _within(minute)(second, fraction * 15625 >> 10)


@lru_cache(256)  # what is done in one minute stands together
def _within(minute: int) -> Callable[[int, int], dt.datetime]:
    """Makes times within a minute of their seconds and microseconds."""
    return partial(dt.datetime, *(EPOCH + dt.timedelta(minutes=minute)).timetuple()[:5])


def oper_date(time: dt.datetime) -> bytes:
    """Encode OPER_DATE."""
    seconds, rest = divmod(time - EPOCH, _second)
    # Rounded up, so that `oper_time`, which rounds down, gives the microsecond that it was.
    return _date.pack(seconds, min(-(-(rest.microseconds << 10) // 15625), _WORD))


def address(syslog_addr: int) -> str:
    """Write a place in the system log: the file's number and the address in it."""
    low = (syslog_addr & _HALF).to_bytes(4).hex().upper()  # half of what a format would cost
    return f"{syslog_addr >> 32}:0x{low}"


def to_signed(number: int, bits: int = 64) -> int:
    """Convert an unsigned number to SQL's signed one of so many bits."""
    return number - (1 << bits) if number >> (bits - 1) else number


@lru_cache(16)
def _names(code_page: str) -> Remembered:
    """Return a cached reader of names: a queue has few, in every row."""
    return Remembered(partial(_name, code_page=code_page))


def _name(value: str | bytes | memoryview, code_page: str) -> str:
    """Read a name; bytes outside the code page are escaped, for names only tell rows apart."""
    if isinstance(value, str):
        # CHAR is padded with blanks or with zero bytes (linter-dispatch-queue.md 8).
        return value.rstrip(" \0")
    return bytes(value).decode(code_page, "backslashreplace").rstrip(" \0")


def utc_reader(zone: str) -> Callable[[bytes], dt.datetime]:
    """Return a reader of OPER_DATE in that zone; its times are UTC without a zone."""
    if zone == "UTC":
        return oper_time
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise ConfigError(
            f"{zone!r} is no time zone.",
            hint="Zones are named as in Europe/Moscow.",
        ) from None

    @lru_cache(256)  # rows of one hour follow each other
    def offset(hour: dt.datetime) -> dt.timedelta:
        return hour.replace(tzinfo=info).utcoffset() or dt.timedelta(0)

    def utc(raw: bytes) -> dt.datetime:
        local = oper_time(raw)
        # Zones change on quarters of an hour, so the offset is that of the quarter.
        return local - offset(local.replace(minute=local.minute // 15 * 15, second=0, microsecond=0))

    return utc


MOST_VALUES: Final = 1 << 10
"""How many values are remembered; when there are more, all are forgotten.

More of them made no difference that stood out of the noise.
"""

LONGEST_BYTES: Final = 64
"""What is longer is seldom met again, and is not kept."""


class Remembered(dict[bytes | str, Any]):
    """What was read, each once. To look one up costs a third of calling a function that remembers."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, raw: bytes | str) -> Any:
        value = self._read(raw)
        if len(raw) <= LONGEST_BYTES:
            if len(self) >= MOST_VALUES:
                self.clear()
            self[raw] = value
        return value
