"""Operations that are as nearly all are: one queue row, whole parts, a key that stays. Does no I/O.

What is told of them here is what `Telling` tells; whatever is odd about a row goes there, and only it knows why.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from operator import itemgetter

from eventlog.core.model import Image, Op, Row, Transaction
from eventlog.sources.linter.rows import CAPACITY, QueueRow, address
from eventlog.sources.linter.tables import SourceTable, SourceTables

PlainTelling = Callable[[QueueRow, int, Transaction, int], Image | None]
"""Gives the image of a row, for where its transaction ended, the transaction and the number in it; None if it is odd."""

_DELETE, _INSERT, _UPDATE = 1, 2, 3  # TYP in either coding
_ADD, _MODIFY, _GONE = Op.ADD, Op.MODIFY, Op.DELETE


class PlainTables(dict[int, PlainTelling]):
    """What tells plain operations of each table, by its number; made when it is first met."""

    def __init__(self, tables: SourceTables, utc: Callable[[bytes], dt.datetime]) -> None:
        super().__init__()
        self._tables = tables
        self._utc = utc

    def __missing__(self, number: int) -> PlainTelling:
        table = self._tables[number]
        made = self[number] = _plain(table, self._utc) if table.plain else _never
        return made


def _never(row: QueueRow, commit: int, transaction: Transaction, place: int) -> None:
    """Nothing is plain about a table with BLOBs, or about one that is told raw."""


def _plain(table: SourceTable, utc: Callable[[bytes], dt.datetime]) -> PlainTelling:
    name, decode, key_of = table.name, table.codec.decode, _key_reader(table.table.key)

    def tell(row: QueueRow, commit: int, transaction: Transaction, place: int) -> Image | None:
        typ, data, first, second = row.typ, row.data, row.len1, row.len2
        end = first + second
        if row.extdata or first < 1 or second < 0 or end > len(data) or end > CAPACITY:
            return None
        before: Row | None = None
        after: Row | None = None
        try:
            if typ == _UPDATE and second:
                before, after, op = decode(data[:first]), decode(data[first:end]), _MODIFY
                if key_of(before) != key_of(after):
                    return None
            elif typ == _INSERT and not second:
                after, op = decode(data[:first]), _ADD
            elif typ == _DELETE and not second:
                before, op = decode(data[:first]), _GONE
            else:
                return None
            return Image(
                position=(commit, row.syslog_addr, 0),
                op=op,
                table=name,
                before=before,
                after=after,
                time=utc(row.oper_date),
                transaction=transaction,
                place=place,
                stream=address(row.syslog_addr),
            )
        except Exception:  # noqa: BLE001  a site's codec may raise anything; `Telling` tries again, and tells it
            return None

    return tell


def _key_reader(key: tuple[str, ...]) -> Callable[[Row], object]:
    """Reads what names a row; a row of a table without a key has no name to change."""
    return itemgetter(*key) if key else lambda _: None
