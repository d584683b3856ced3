"""Committed transactions become images, and the descriptions in the stream become a catalog.

No I/O but a spill's.

A label of the stream means a table, which the stream, the settings and a schema file describe. In a
transaction the former row of an update waits for the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DamageError, DataError, SourceError, shorten
from eventlog.core.model import Image, Op, Transaction
from eventlog.core.plural import count_words
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.gbase.files import load_dirty_framing
from eventlog.sources.gbase.layout import CapturedLayout
from eventlog.sources.gbase.reader import CommittedRecords, Item, RecordReader
from eventlog.sources.gbase.records import CdcRecord, Framer, RecordFrame, frames, place_of
from eventlog.sources.gbase.rows import GBaseRowReader, ReadRow, Values
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.images import part_image
from eventlog.sources.stream.source import ImageBatch, StreamPiece
from eventlog.sources.stream.transactions import SpillFactory

PIECE_IMAGES: Final = 4096
"""Images of a large transaction that are made at once."""
RAW_BYTES: Final = 400
"""Hexadecimal digits of a row that cannot be read which are reported."""
# Members of an enum that every row is compared with: looking them up in it costs as much as making
# half an image.
_INSERT, _DELETE, _UPDBEF, _UPDAFT, _TRUNCATE = map(
    int, (CdcRecord.INSERT, CdcRecord.DELETE, CdcRecord.UPDBEF, CdcRecord.UPDAFT, CdcRecord.TRUNCATE)
)
_ADD, _MODIFY, _GONE, _EMPTIED = Op.ADD, Op.MODIFY, Op.DELETE, Op.TRUNCATE


class DescribedTable(NamedTuple):
    """How rows with a label are read at one point of the stream, and what their table is there."""

    table: Table
    name: str
    read: ReadRow


class _Before(Struct, frozen=True, gc=False):
    """The former row of an update whose new row has not come."""

    seq: int
    label: int
    described: DescribedTable
    values: Values | None
    fault: str | None


class Making:
    """The images of one transaction, as far as they are made."""

    __slots__ = (
        *("_before", "_commit", "_committed", "_fail", "_log", "_log_prefix", "_time", "_transaction", "_user"),
        *("full", "images", "place"),
    )

    def __init__(self, committed: CommittedRecords, *, fail: bool) -> None:
        self._committed = committed
        self._commit = committed.seq
        self._transaction = Transaction(id=committed.seq, time=committed.time)
        self._time = committed.time
        self._user = None if committed.user is None else str(committed.user)
        self._fail = fail
        self._before: _Before | None = None
        self._log = -1
        self._log_prefix = ""
        self.place = 0
        self.full = PIECE_IMAGES
        """At which place the images are handed out."""
        self.images: list[Image] = []

    def piece(self, catalog: Catalog, *, complete: bool = False) -> StreamPiece:
        """Return the images made since the last piece.

        With `complete`, the last one is marked as the transaction's last.
        """
        if complete:
            self.flush()
        images, self.images = self.images, []
        self.full = self.place + PIECE_IMAGES
        committed = self._committed
        begin = None
        if complete:
            if images:
                images[-1] = replace(images[-1], last=True)
            # Behind it the stream is read from where the earliest transaction began that was open
            # then.
            begin = committed.open or committed.seq
        return StreamPiece(images=images, catalog=catalog, commit=committed.seq, begin=begin, since=committed.since)

    def flush(self) -> None:
        """Emit a former row still waiting for its new one: none will come."""
        before, self._before = self._before, None
        if before is not None:
            self._add(before.seq, before.described, _MODIFY, before.values, None, before.fault)

    def take(
        self,
        items: Iterator[Item],
        described: DescribedTable,
        generation: int,
        label: int,
    ) -> Item | None:
        """Makes images of the items that are so described until enough are made.

        Gives the first that is left.

        Only a former row waits for the new one, which comes next or never.
        """
        read, full = described.read, self.full
        for item in items:
            now, seq, own, frame = item
            # Another table, another description of it, or enough images: the caller goes on from
            # this item.
            if own != label or now != generation or self.place >= full:
                return item
            number = frame.number
            values: Values | None = None
            # A TRUNCATE has no row, and knows its table by the label alone (gbase-cdc.md 2).
            fault: str | None = None
            if number != _TRUNCATE:
                try:
                    values = read(frame.data, frame.header_size)
                except DataError as error:
                    fault = self._fault(item, error)
            before = self._before
            # The new row comes next in the transaction, if it comes at all: rows that a fragmented
            # table moves may lack one half.
            if before is not None and (number != _UPDAFT or before.label != label):
                self.flush()
                before = None
            if number == _INSERT:
                self._add(seq, described, _ADD, None, values, fault)
            elif number == _UPDBEF:
                self._before = _Before(seq, label, described, values, fault)
            elif number == _DELETE:
                self._add(seq, described, _GONE, values, None, fault)
            elif number == _TRUNCATE:
                self._add(seq, described, _EMPTIED, None, None, None)
            # A new row without its former one goes out as it is.
            elif before is None:
                self._add(seq, described, _MODIFY, None, values, fault)
            else:
                self._before = None
                self._add(seq, described, _MODIFY, before.values, values, before.fault or fault)
        return None

    def _add(
        self,
        seq: int,
        described: DescribedTable,
        op: Op,
        before: Values | None,
        after: Values | None,
        fault: str | None,
    ) -> None:
        """Makes an image, or two where the key changes."""
        if seq >> 32 != self._log:
            self._log = seq >> 32  # the number of the logical log, the same for many rows
            self._log_prefix = f"{self._log}:0x"
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
            stream=self._log_prefix + hex(seq & 0xFFFFFFFF)[2:].upper(),  # noqa: FURB116  # a third of an f-string's cost
            fault=fault,
        )
        # A row that cannot be read has no key to compare.
        if before is None or after is None or fault is not None or not _changes(before, after, described.table.key):
            self.images.append(image)
            return
        # A change of the key is a delete and an insert, at two places.
        for part in part_image(image, described.table.key):
            self.images.append(replace(part, place=self.place))
            self.place += part.op is _GONE

    def _fault(self, item: Item, error: DataError) -> str:
        """Explain why a row is unreadable, with its place and bytes."""
        _, seq, label, frame = item
        if self._fail:
            raise DamageError(
                f"a row of label {label} cannot be read: {str(error).rstrip('.')}",
                offset=frame.offset,
            )
        raw = shorten(frame.payload.hex(), RAW_BYTES) or "no bytes"
        return f"Byte {frame.offset} of the stream, {place_of(seq)}, label {label}: {error} The row: {raw}."


def _changes(before: Values, after: Values, key: tuple[str, ...]) -> bool:
    """Return True if the key changes."""
    for name in key:  # noqa: SIM110  # a generator costs three times as much, and this is asked of every update
        if before.get(name) != after.get(name):
            return True
    return False


class ImageMaker:
    """Makes images of what the transactions of a stream did.

    `known` are tables that a schema file describes.
    """

    def __init__(
        self,
        settings: GBaseSettings,
        records: RecordReader,
        known: Catalog | None = None,
    ) -> None:
        self._settings = settings
        self._records = records
        self._known = known
        self._described: dict[tuple[int, int], DescribedTable] = {}
        self._current: dict[int, DescribedTable] = {}
        self._catalog = Catalog(known or ())

    def pieces(self, committed: CommittedRecords) -> Iterator[StreamPiece]:
        """Yield the images of a transaction, at least one piece, perhaps empty."""
        making = Making(committed, fail=self._settings.unknown_rows == "fail")
        items = committed.items
        item = next(items, None)
        while item is not None:
            generation, _, label, _ = item
            described = self._described.get((generation, label))
            if described is None or self._current.get(label) is not described:
                # A piece has one catalog, so what was made goes out before the catalog shows
                # another table.
                making.flush()
                if making.images:
                    yield making.piece(self._catalog)
                described = self._turn(generation, label)
            if making.place >= making.full:
                yield making.piece(self._catalog)
            item = making.take(chain((item,), items), described, generation, label)
        # An empty piece too: that the transaction ended moves the mark.
        yield making.piece(self._catalog, complete=True)

    def _turn(self, generation: int, label: int) -> DescribedTable:
        """Make the label's table at that point of the stream the current one in the catalog."""
        described = self._described.get((generation, label))
        if described is None:
            described = self._described[generation, label] = self._describe(generation, label)
        self._current[label] = described
        # Another description of one label takes the place of its former one in the catalog.
        shown = {table.whole: table for table in self._known or ()}
        shown |= {current.name: current.table for current in self._current.values()}
        self._catalog = Catalog(shown.values(), case_sensitive=bool(self._known and self._known.case_sensitive))
        return described

    def _describe(self, generation: int, label: int) -> DescribedTable:
        labels, layouts = self._records.labels, self._records.layouts
        # The latest description before the row counts, not the latest of all: the row was held, and
        # its table may have been described anew since.
        for at in range(generation - 1, -1, -1):
            if labels[at] == label:
                break
        else:
            table = table_of(label, None, self._settings, self._known)
            refusing = _refusing(f"nothing has described the columns of label {label}.")
            return DescribedTable(table, table.whole, refusing)
        layout = layouts[at]
        same = self._described.get((at + 1, label))
        if same is not None:
            return same  # another table was described meanwhile
        if isinstance(layout, str):  # why it cannot be read
            table = table_of(label, None, self._settings, self._known)
            read: ReadRow = _refusing(layout)
        else:
            table = table_of(label, layout, self._settings, self._known)
            read = GBaseRowReader(respell(layout, table), self._settings.texts, self._settings.sizes)
        # Each description of the label after the first is another version of its table.
        table = replace(table, version=table.version + labels[: at + 1].count(label) - 1)
        described = self._described[at + 1, label] = DescribedTable(table, table.whole, read)
        return described


def _refusing(reason: str) -> ReadRow:
    def read(_data: bytes, _header_size: int) -> Values:
        raise DataError(reason)

    return read


IMAGE_BYTES: Final = 1_000
"""Images of a batch, about: so few that the processor's cache still holds them when they go out."""


def images(
    chunks: Iterable[bytes],
    settings: GBaseSettings,
    known: Catalog | None = None,
    *,
    report: Callable[[str], None] = lambda _: None,
    spill: SpillFactory[Item] | None = None,
    lose: Callable[[int], None] = lambda _: None,
    size: int = IMAGE_BYTES,
) -> Iterator[ImageBatch]:
    """Yield batches of about `size` images, in order of commits.

    Nothing is held longer than to the end of its transaction. DamageError, with the offset, comes
    after everything before the damage; so does an error of the server. Oddities go to `report`;
    `lose` gets the number of records left out with unknown content.
    """
    records = RecordReader(settings, report, spill, lose)
    framer = Framer(largest=settings.largest_record, skip_schemes=settings.skip_schemes)
    maker = ImageMaker(settings, records, known)
    if settings.dirty:
        framed = load_dirty_framing()(chunks, framer, settings.largest_record)
    else:
        framed = frames(chunks, framer)
    try:
        yield from _batches(_pieces(framed, records, maker), size)
        if framer.skipped:
            left_out = count_words(framer.skipped, "record")
            report(f"Left out, as skip_schemes says: {left_out} of other packet schemes.")
        records.transactions.end()
        records.refuse_error_at_end()
    finally:
        records.transactions.close()


def _pieces(
    framed: Iterable[list[RecordFrame]],
    records: RecordReader,
    maker: ImageMaker,
) -> Iterator[StreamPiece]:
    for some_frames in framed:
        for committed in records.read(some_frames):
            yield from maker.pieces(committed)


def _batches(pieces: Iterator[StreamPiece], size: int) -> Iterator[ImageBatch]:
    """Join pieces of one catalog; yield them before an error is raised."""
    gathered: list[Image] = []
    catalog: Catalog | None = None
    # Raised once what came before it was handed out.
    failure: DamageError | SourceError | None = None
    try:
        for piece in pieces:
            # A batch has one catalog.
            if gathered and (piece.catalog is not catalog or len(gathered) >= size):
                yield ImageBatch(images=gathered, catalog=catalog)
                gathered = []
            gathered += piece.images
            catalog = piece.catalog
    except (DamageError, SourceError) as error:
        failure = error
    if gathered:
        yield ImageBatch(images=gathered, catalog=catalog)
    if failure is not None:
        raise failure


def table_of(
    label: int,
    layout: CapturedLayout | None,
    settings: GBaseSettings,
    known: Catalog | None,
) -> Table:
    """Return the table of a label, with known columns and those only the stream has."""
    table = _find_table(label, settings, known)
    columns = list(table.columns)
    spelled = {column.name.casefold() for column in columns}
    if layout is not None:
        # What only the stream names keeps its spelling; a column that is known keeps the schema
        # file's.
        own = [column for column in layout.columns if column.name.casefold() not in spelled]
        columns += [Column(name=column.name, type=column.type.sql) for column in own]
    table = replace(table, columns=tuple(columns))
    keys = {name.rpartition(":")[2].casefold(): key for name, key in settings.keys.items()}
    key = keys.get(table.whole.casefold()) or keys.get(table.name.casefold())
    if key is None:
        return table
    positions = {name.casefold(): position for position, name in enumerate(key, start=1)}
    columns = [replace(column, key=positions.get(column.name.casefold())) for column in table.columns]
    missing = positions.keys() - {column.name.casefold() for column in columns}
    # Key columns that nothing has described yet: the first TABSCHEM may come later.
    unseen = [name for name in key if name.casefold() in missing]
    columns += [Column(name=name, key=positions[name.casefold()]) for name in unseen]
    return replace(table, columns=tuple(columns))


def respell(layout: CapturedLayout, table: Table) -> CapturedLayout:
    """Spell the layout's columns as the table does."""
    names = {column.name.casefold(): column.name for column in table.columns}
    exact = {column.name for column in table.columns}
    columns = [
        column if column.name in exact else replace(column, name=names.get(column.name.casefold(), column.name))
        for column in layout.columns
    ]
    return replace(layout, columns=tuple(columns))


def _find_table(label: int, settings: GBaseSettings, known: Catalog | None) -> Table:
    """Find the table in the schema file by the label's name or number; else make an empty one."""
    given = settings.tables.get(str(label))
    if given is None:
        for table in known or ():
            if table.number == label:
                return table
        return Table(name=f"table_{label}", columns=(), number=label)
    name = given.rpartition(":")[2]  # without the database, which only a server needs
    match = known.find(name) if known is not None else None
    if match is not None:
        return match.table
    schema, _, bare = name.rpartition(".")
    return Table(name=bare, schema=schema or None, columns=(), number=label)
