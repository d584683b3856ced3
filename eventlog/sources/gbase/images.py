"""Committed transactions become images, and the descriptions in the stream become a catalog. Does no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eventlog.errors import DamageError, DataError, shortened
from eventlog.model import Image, Op, Transaction
from eventlog.rules import parted
from eventlog.schema import Catalog, Table
from eventlog.sources.gbase.compiled import compiled
from eventlog.sources.gbase.reader import Committed, Item, RecordReader
from eventlog.sources.gbase.records import Record, place_of
from eventlog.sources.gbase.rows import Reader, Values
from eventlog.sources.gbase.settings import GbaseSettings
from eventlog.sources.gbase.tables import full_name, spelled_as, table_of

PIECE: Final = 4096
"""Images of a large transaction that are made at once."""
RAW: Final = 400
"""Hexadecimal digits of a row that cannot be read which are told with it."""
_OPS: Final = {Record.INSERT: Op.ADD, Record.DELETE: Op.DELETE, Record.UPDAFT: Op.MODIFY, Record.TRUNCATE: Op.TRUNCATE}
_INSERT, _DELETE, _UPDBEF, _UPDAFT, _TRUNCATE = map(
    int, (Record.INSERT, Record.DELETE, Record.UPDBEF, Record.UPDAFT, Record.TRUNCATE)
)


class Stretch(Struct, frozen=True, kw_only=True):
    """Images of one transaction that one catalog describes. With `complete` the transaction ends here.

    `commit` is where the transaction was committed, `open` where the earliest one began that was open then.
    """

    images: list[Image]
    catalog: Catalog
    commit: int
    open: int | None
    complete: bool


class Described(NamedTuple):
    """How rows with a label are read at one point of the stream, and what their table is there."""

    table: Table
    name: str
    read: Reader


class ImageMaker:
    """Makes images of what the transactions of a stream did. `known` are tables that a schema file describes."""

    def __init__(self, settings: GbaseSettings, records: RecordReader, known: Catalog | None = None) -> None:
        self._settings = settings
        self._records = records
        self._known = known
        self._described: dict[tuple[int, int], Described] = {}
        self._current: dict[int, Described] = {}
        self._catalog = Catalog(known or ())

    def stretches(self, committed: Committed) -> Iterator[Stretch]:
        """The transaction's images, at least one stretch, which may be empty."""
        making = _Making(committed, fail=self._settings.unknown_rows == "fail")
        described, current = self._described, self._current
        items = committed.items
        following = next(items, None)
        met: tuple[int, int] | None = None
        found: Described | None = None
        while following is not None:
            item, following = following, next(items, None)
            generation, _, label, _ = item
            if found is None or met != (generation, label):
                met = (generation, label)
                found = described.get(met)
                if found is None or current.get(label) is not found:
                    making.flush()
                    if making.found:
                        yield making.stretch(self._catalog)
                    found = self._turn(generation, label)
            if making.place >= making.full:
                yield making.stretch(self._catalog)
            making.take(item, found, following is None)
        yield making.stretch(self._catalog, complete=True)

    def _turn(self, generation: int, label: int) -> Described:
        """The label's table as it is at that point of the stream, which the catalog shows from now on."""
        found = self._described.get((generation, label))
        if found is None:
            found = self._described[generation, label] = self._describe(generation, label)
        self._current[label] = found
        shown = {full_name(table): table for table in self._known or ()}
        shown |= {one.name: one.table for one in self._current.values()}
        self._catalog = Catalog(shown.values(), case_sensitive=bool(self._known and self._known.case_sensitive))
        return found

    def _describe(self, generation: int, label: int) -> Described:
        labels, layouts = self._records.labels, self._records.layouts
        for at in range(generation - 1, -1, -1):
            if labels[at] == label:
                break
        else:
            table = table_of(label, None, self._settings, self._known)
            return Described(table, full_name(table), _refusing(f"nothing has described the columns of label {label}."))
        layout = layouts[at]
        same = self._described.get((at + 1, label))
        if same is not None:
            return same  # another table was described meanwhile
        table = table_of(label, None if isinstance(layout, str) else layout, self._settings, self._known)
        if isinstance(layout, str):
            made = Described(table, full_name(table), _refusing(layout))
        else:
            read = compiled(spelled_as(layout, table), self._settings.texts, self._settings.sizes)
            made = Described(table, full_name(table), read)
        self._described[at + 1, label] = made
        return made


def _refusing(reason: str) -> Reader:
    def read(_data: bytes, _header_size: int) -> Values:
        raise DataError(reason)

    return read


def _moved(before: Values, after: Values, key: tuple[str, ...]) -> bool:
    """Whether the key may have changed: asked of every update."""
    for name in key:  # noqa: SIM110  # a generator costs three times as much, and this is asked of every update
        if before.get(name) != after.get(name):
            return True
    return False


class _Before(NamedTuple):
    """The former row of an update whose new row has not come."""

    item: Item
    described: Described
    values: Values | None
    fault: str | None


class _Making:
    """The images of one transaction, as far as they are made."""

    __slots__ = ("_commit", "_committed", "_fail", "_time", "_transaction", "_user", "before", "found", "full", "place")

    def __init__(self, committed: Committed, *, fail: bool) -> None:
        self._committed = committed
        self._commit = committed.seq
        self._transaction = Transaction(id=committed.seq, time=committed.time)
        self._time = committed.time
        self._user = None if committed.user is None else str(committed.user)
        self._fail = fail
        self.place = 0
        self.full = PIECE
        """At which place the images are handed out."""
        self.found: list[Image] = []
        self.before: _Before | None = None

    def stretch(self, catalog: Catalog, *, complete: bool = False) -> Stretch:
        """What was made since the last one."""
        found, self.found = self.found, []
        self.full = self.place + PIECE
        committed = self._committed
        return Stretch(images=found, catalog=catalog, commit=committed.seq, open=committed.open, complete=complete)

    def flush(self) -> None:
        """The table turns into another one, so a former row waits no longer for its new one."""
        if self.before is not None:
            self._alone(self.before, last=False)

    def take(self, item: Item, described: Described, last: bool) -> None:
        """Makes the images of one record; only a former row waits for the new one, which comes next or never."""
        frame = item[3]
        number = frame.number
        before = self.before
        if before is not None and (number != _UPDAFT or before.item[2] != item[2]):
            self._alone(before, last=False)
            before = None
        values: Values | None = None
        fault = None
        if number != _TRUNCATE:
            try:
                values = described.read(frame.data, frame.header_size)
            except DataError as error:
                fault = self._fault(item, error)
        if number == _INSERT:
            self._add(item, described, Op.ADD, None, values, fault, last)
        elif number == _UPDBEF:
            self.before = _Before(item, described, values, fault)
            if last:
                self._alone(self.before, last=True)
        elif number in (_DELETE, _TRUNCATE):
            self._add(item, described, _OPS[Record(number)], values, None, fault, last)
        elif before is None:
            self._add(item, described, Op.MODIFY, None, values, fault, last)
        else:
            self.before = None
            self._add(item, described, Op.MODIFY, before.values, values, before.fault or fault, last)

    def _alone(self, before: _Before, *, last: bool) -> None:
        """An update whose new row never came."""
        self.before = None
        self._add(before.item, before.described, Op.MODIFY, before.values, None, before.fault, last)

    def _add(  # one call a row; a value to carry the arguments would cost as much as the image
        self,
        item: Item,
        described: Described,
        op: Op,
        before: Values | None,
        after: Values | None,
        fault: str | None,
        last: bool,
    ) -> None:
        seq = item[1]
        self.place = place = self.place + 1
        image = Image(
            position=(self._commit, seq, 0),
            op=op,
            table=described.name,
            before=before,
            after=after,
            time=self._time,
            perpetrator=self._user,
            transaction=self._transaction,
            place=place,
            last=last,
            stream=f"{seq >> 32}:0x{seq & 0xFFFFFFFF:X}",
            fault=fault,
        )
        if before is not None and after is not None and fault is None and _moved(before, after, described.table.key):
            parts = parted(image, described.table.key)
            if len(parts) > 1:
                self.place += 1
                self.found.append(parts[0])
                image = replace(parts[1], place=self.place)
        self.found.append(image)

    def _fault(self, item: Item, error: DataError) -> str:
        """Why a row cannot be told, where it is, and its bytes: nothing is lost."""
        _, seq, label, frame = item
        if self._fail:
            raise DamageError(f"a row of label {label} cannot be read: {str(error).rstrip('.')}", offset=frame.offset)
        raw = shortened(frame.payload.hex(), RAW)
        return (
            f"Byte {frame.offset} of the stream, {place_of(seq)}, label {label}: {error} The row: {raw or 'no bytes'}."
        )
