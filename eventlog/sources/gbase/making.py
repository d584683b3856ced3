"""The images of one transaction, made from its rows: a former row waits for the new one. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DamageError, DataError, shortened
from eventlog.core.model import Image, Op, Transaction
from eventlog.core.rules import parted
from eventlog.core.schema import Catalog, Table
from eventlog.sources.gbase.reader import Committed, Item
from eventlog.sources.gbase.records import Record, place_of
from eventlog.sources.gbase.rows import Reader, Values
from eventlog.sources.stream.source import StreamPiece

PIECE: Final = 4096
"""Images of a large transaction that are made at once."""
RAW: Final = 400
"""Hexadecimal digits of a row that cannot be read which are told with it."""
_OPS: Final = {Record.INSERT: Op.ADD, Record.DELETE: Op.DELETE, Record.UPDAFT: Op.MODIFY, Record.TRUNCATE: Op.TRUNCATE}
# Members of an enum that every row is compared with: looking them up in it costs as much as making half an image.
_INSERT, _DELETE, _UPDBEF, _UPDAFT, _TRUNCATE = map(
    int, (Record.INSERT, Record.DELETE, Record.UPDBEF, Record.UPDAFT, Record.TRUNCATE)
)
_ADD, _MODIFY, _GONE = Op.ADD, Op.MODIFY, Op.DELETE


class Described(NamedTuple):
    """How rows with a label are read at one point of the stream, and what their table is there."""

    table: Table
    name: str
    read: Reader


class _Before(Struct, frozen=True):
    """The former row of an update whose new row has not come."""

    item: Item
    described: Described
    values: Values | None
    fault: str | None


class Making:
    """The images of one transaction, as far as they are made."""

    __slots__ = (
        *("_before", "_commit", "_committed", "_fail", "_log", "_time", "_transaction", "_user", "_written"),
        *("found", "full", "place"),
    )

    def __init__(self, committed: Committed, *, fail: bool) -> None:
        self._committed = committed
        self._commit = committed.seq
        self._transaction = Transaction(id=committed.seq, time=committed.time)
        self._time = committed.time
        self._user = None if committed.user is None else str(committed.user)
        self._fail = fail
        self._before: _Before | None = None
        self._log = -1
        self._written = ""
        self.place = 0
        self.full = PIECE
        """At which place the images are handed out."""
        self.found: list[Image] = []

    def piece(self, catalog: Catalog, *, complete: bool = False) -> StreamPiece:
        """What was made since the last one; the last image of a complete transaction says that it is.

        Behind it the stream is read from where the earliest transaction began that was open then.
        """
        if complete:
            self.flush()
        found, self.found = self.found, []
        if complete and found:
            found[-1] = replace(found[-1], last=True)
        self.full = self.place + PIECE
        committed = self._committed
        begin = (committed.open or committed.seq) if complete else None
        return StreamPiece(images=found, catalog=catalog, commit=committed.seq, begin=begin, since=committed.since)

    def flush(self) -> None:
        """Nothing else comes, or the table turns into another one: a former row waits no longer for its new one."""
        before = self._before
        if before is not None:
            self._before = None
            self._add(before.item, before.described, Op.MODIFY, before.values, None, before.fault)

    def take(self, items: Iterator[Item], described: Described, generation: int, label: int) -> Item | None:
        """Makes images of the items that are so described until enough are made; gives the first that is left."""
        read, key, made, full = described.read, described.table.key, self.found, self.full
        for item in items:
            now, seq, own, frame = item
            if own != label or now != generation or self.place >= full:
                return item
            number, before = frame.number, self._before
            if number == _TRUNCATE:
                self._odd(item, described, None, None)
                continue
            try:
                values = read(frame.data, frame.header_size)
            except DataError as error:
                self._odd(item, described, None, self._fault(item, error))
                continue
            old: Values | None = None
            new: Values | None = values
            if before is None and number == _INSERT:
                op = _ADD
            elif before is None and number == _UPDBEF:
                self._before = _Before(item, described, values, None)
                continue
            elif before is None and number == _DELETE:
                op, old, new = _GONE, values, None
            elif number == _UPDAFT and before is not None and not _apart(before, label, values, key):
                op, old, self._before = _MODIFY, before.values, None
            else:
                self._odd(item, described, values, None)
                continue
            if seq >> 32 != self._log:
                self._log = seq >> 32
                self._written = f"{self._log}:0x"
            self.place = place = self.place + 1
            image = Image(
                position=(self._commit, seq, 0),
                op=op,
                table=described.name,
                before=old,
                after=new,
                time=self._time,
                perpetrator=self._user,
                transaction=self._transaction,
                place=place,
                stream=self._written + hex(seq & 0xFFFFFFFF)[2:].upper(),  # noqa: FURB116  # a third of an f-string's cost
            )
            made.append(image)
        return None

    def _odd(self, item: Item, described: Described, values: Values | None, fault: str | None) -> None:
        """Makes the images of any record; only a former row waits for the new one, which comes next or never."""
        number = item[3].number
        before = self._before
        if before is not None and (number != _UPDAFT or before.item[2] != item[2]):
            self.flush()
            before = None
        if number == _INSERT:
            self._add(item, described, Op.ADD, None, values, fault)
        elif number == _UPDBEF:
            self._before = _Before(item, described, values, fault)
        elif number in (_DELETE, _TRUNCATE):
            self._add(item, described, _OPS[Record(number)], values, None, fault)
        elif before is None:
            self._add(item, described, Op.MODIFY, None, values, fault)
        else:
            self._before = None
            self._add(item, described, Op.MODIFY, before.values, values, before.fault or fault)

    def _add(
        self,
        item: Item,
        described: Described,
        op: Op,
        before: Values | None,
        after: Values | None,
        fault: str | None,
    ) -> None:
        seq = item[1]
        self.place += 1
        image = Image(
            position=(self._commit, seq, 0),
            op=op,
            table=described.name,
            before=before,
            after=after,
            time=self._time,
            perpetrator=self._user,
            transaction=self._transaction,
            place=self.place,
            stream=place_of(seq),
            fault=fault,
        )
        for part in parted(image, described.table.key) if fault is None else (image,):
            if part.position != image.position:
                self.place += 1
            self.found.append(replace(part, place=self.place))

    def _fault(self, item: Item, error: DataError) -> str:
        """Why a row cannot be told, where it is, and its bytes: nothing is lost."""
        _, seq, label, frame = item
        if self._fail:
            raise DamageError(f"a row of label {label} cannot be read: {str(error).rstrip('.')}", offset=frame.offset)
        raw = shortened(frame.payload.hex(), RAW)
        return (
            f"Byte {frame.offset} of the stream, {place_of(seq)}, label {label}: {error} The row: {raw or 'no bytes'}."
        )


def _apart(before: _Before, label: int, after: Values, key: tuple[str, ...]) -> bool:
    """Whether the new row does not simply follow the former one: another table, a fault, or another key."""
    values = before.values
    if values is None or before.item[2] != label:
        return True
    for name in key:  # noqa: SIM110  # a generator costs three times as much, and this is asked of every update
        if values.get(name) != after.get(name):
            return True
    return False
