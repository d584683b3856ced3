"""The rows of a log as record batches: their schemas, the number of each row's object, and the
rules' Events of them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.core.errors import shortened
from eventlog.core.model import Event, RowId, Transaction
from eventlog.core.rules.meaning import MEANING
from eventlog.core.rules.screen import Identities
from eventlog.core.rules.times import in_utc
from eventlog.core.schema import Catalog
from eventlog.sql.names import STANDARD, TRANSACTION

NUMBERS: Final = frozenset({"record_id", "event_type", TRANSACTION})
"""The columns that hold integers; all others are text, event_time in ISO 8601."""

PROBLEM: Final = "problem"
"""Why a row cannot even be given to the rules (its record_id is no number, …); NULL for all
others.
"""

OBJECT: Final = "object"
"""The number of the row's object: a stable hash of what the object is told apart by. Equal objects
have equal numbers.
"""

ROWS: Final = pa.schema(
    [(name, pa.int64() if name in NUMBERS else pa.string()) for name in (*STANDARD, TRANSACTION)]
    + [(PROBLEM, pa.string())]
)
"""Rows of the input: the ten columns, the transaction that wrote the row or NULL, and `problem`.
Only a row with a problem may have no record_id.
"""

PLACED: Final = ROWS.append(pa.field(OBJECT, pa.int64()))
"""Rows with their objects."""

OUTCOMES: Final = pa.schema(
    [("position", pa.int64()), ("status", pa.string()), ("reason", pa.string()), ("note", pa.string())]
)
"""What became of every row; without a position where the row had no record_id."""

TOLD_OUTCOMES: Final = pa.schema(
    [("position", pa.string()), ("status", pa.string()), ("reason", pa.string()), ("note", pa.string())]
)
"""The same of a stream, whose positions are several numbers."""

STREAM_OUTCOMES: Final = pa.schema([("place", pa.int64()), *TOLD_OUTCOMES])
"""The same on the way, in the order of `place`."""


def events_of(rows: pa.RecordBatch | pa.Table, *, transactions: bool = False) -> list[Event]:
    """The events of rows without problems, in their order; with `transactions` each says which one
    wrote it.

    Texts that repeat are one string: their hashes are then computed once, and a chunk takes half of
    the memory.
    """
    columns = zip(
        zip(rows.column("record_id").to_pylist(), strict=True),  # positions are tuples
        rows.column("event_type").to_pylist(),
        _repeated(rows.column("table_name")),
        _in_runs(rows.column("table_key")),
        _repeated(rows.column("column_name")),
        rows.column("old_value").to_pylist(),
        rows.column("new_value").to_pylist(),
        _repeated(rows.column("event_time")),
        _repeated(rows.column("perpetrator")),
        _transactions(rows.column(TRANSACTION)) if transactions else [None] * len(rows),
        strict=True,
    )
    return [
        Event(
            position=position,
            kind=kind,
            table=table,
            key=key,
            column=column,
            old=old,
            new=new,
            time=time,
            perpetrator=perpetrator,
            transaction=transaction,
        )
        for position, kind, table, key, column, old, new, time, perpetrator, transaction in columns
    ]


def integers(column: pa.Array) -> memoryview:
    """The integers of a column without NULLs, where they stand in memory."""
    values = memoryview(column.buffers()[1]).cast("q") if len(column) else memoryview(b"").cast("q")
    return values[column.offset : column.offset + len(column)]


def one_batch(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    combined = pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches()
    return combined[0] if combined else pa.RecordBatch.from_pylist([], schema=schema)


def uncut(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of one object in the order of record_id, cut anew so that equal record_ids are never
    parted.
    """
    held: pa.RecordBatch | None = None
    for piece in pieces:
        rows = piece if held is None else one_batch([held, piece], piece.schema)
        numbers = rows.column("record_id")
        last = len(rows) - 1
        while last > 0 and numbers[last].is_valid and numbers[last].as_py() == numbers[last - 1].as_py():
            last -= 1
        if last > 0:
            yield rows.slice(0, last)
        held = rows.slice(max(last, 0))
    if held is not None:
        yield held


def _transactions(column: pa.Array) -> list[Transaction | None]:
    """The transactions with these numbers; equal numbers share one value."""
    numbers = column.to_pylist()
    known = {number: None if number is None else Transaction(id=number) for number in set(numbers)}
    return [known[number] for number in numbers]


def _repeated(column: pa.Array) -> list[str | None]:
    """The texts of a column in which each stands often."""
    if column.null_count == len(column):
        return [None] * len(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    texts: list[str | None] = encoded.dictionary.to_pylist()
    if len(texts) == 1:
        return texts * len(column)
    return [texts[code] for code in encoded.indices.to_pylist()]


def _in_runs(column: pa.Array) -> list[str | None]:
    """The texts of a column in which the same stands several times in a row."""
    encoded = pc.run_end_encode(column, run_end_type=pa.int64())
    ends = encoded.run_ends.to_pylist()
    runs = zip(encoded.values.to_pylist(), [0, *ends], ends, strict=False)
    return [text for text, start, end in runs for _ in range(start, end)]


ROW_KINDS = pa.array([int(kind) for kind, meaning in MEANING.items() if meaning.row and kind is not None], pa.int64())


class Placing:
    """Gives rows the numbers of their objects; keeps what it has looked up within one batch
    only.
    """

    def __init__(self, catalog: Catalog | None) -> None:
        self._identities = Identities(catalog)

    def place(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of ROWS with their objects: PLACED."""
        objects = self.objects(rows.column("event_type"), rows.column("table_name"), rows.column("table_key"))
        return pa.RecordBatch.from_arrays([*rows.columns, objects], schema=PLACED)

    def objects(self, types: pa.Array, names: pa.Array, texts: pa.Array) -> pa.Array:
        """The numbers of the objects that rows with these event types, table names and keys speak
        of.
        """
        kinds = pc.fill_null(pc.is_in(types, value_set=ROW_KINDS), False)
        tables = _codes(names)
        keys = _codes(texts)
        combined = pc.add(pc.multiply(keys.indices, len(tables.dictionary) * 2), pc.multiply(tables.indices, 2))
        met = pc.add(combined, pc.cast(kinds, pa.int64())).dictionary_encode()
        numbers = self._numbers(met.dictionary.to_pylist(), tables.dictionary.to_pylist(), keys.dictionary.to_pylist())
        return pa.array(numbers, pa.int64()).take(met.indices)

    def _numbers(self, met: list[int], tables: list[str | None], keys: list[str | None]) -> list[int]:
        """The object of each combination of table_name, table_key and row event that occurs."""
        return [
            self.number_of(tables[code // 2 % len(tables)], keys[code // 2 // len(tables)], row_event=code % 2 == 1)
            for code in met
        ]

    def number_of(self, table: str | None, key: str | None, *, row_event: bool) -> int:
        """The number of the object that the texts of a row mean; texts that mean none have a number
        of their own.
        """
        row = self._identities.row_id(table, key, row_event=row_event)
        return _hash(f"?\0{table}\0{key}") if row is None else object_number(row)


def object_number(row: RowId) -> int:
    return _hash(f"{row.schema}\0{row.table}\0{row.key}")


def bucket_of(objects: pa.Array, buckets: int) -> pa.Array:
    """The bucket of each object among `buckets`, a power of two."""
    return pc.bit_wise_and(objects, buckets - 1)


def _hash(text: str) -> int:
    """A number of 62 bits, quickly made; the rules tell objects apart themselves, should two have
    the same.
    """
    data = text.encode("utf-8", "surrogatepass")
    return crc32(data) >> 1 << 31 ^ crc32(data[::-1])


def _codes(texts: pa.Array) -> Any:
    """The texts as 64 bit codes and what they stand for; NULL is a text of its own."""
    encoded = texts.dictionary_encode(null_encoding="encode")
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int64()), encoded.dictionary)


_whole = re.compile(r" *([+-]?\d+)(?:\.0*)? *", re.ASCII).fullmatch
_INT64 = range(-(2**63), 2**63)
MEANT: Final = {
    "record_id": "whole numbers identify a row",
    "event_type": "the numbers from 1 to 8 have a meaning",
    TRANSACTION: "whole numbers identify a transaction",
}


def shaped(columns: Mapping[str, pa.Array], statuses: str = "") -> pa.RecordBatch:
    """The columns as rows of ROWS, only those with one of the status letters if there are any."""
    problems: dict[int, str] = {}
    made = [
        _number(columns[name], name, problems) if name in NUMBERS else _text(columns[name], name, problems)
        for name in STANDARD
    ]
    count = len(made[0])
    transaction = columns.get(TRANSACTION)
    made.append(pa.nulls(count, pa.int64()) if transaction is None else _number(transaction, TRANSACTION, problems))
    told = (
        pa.array([problems.get(place) for place in range(count)], pa.string())
        if problems
        else pa.nulls(count, pa.string())
    )
    batch = pa.RecordBatch.from_arrays([*made, told], schema=ROWS)
    if not statuses:
        return batch
    return batch.filter(pc.is_in(batch.column("status"), value_set=pa.array(list(statuses), pa.string())))


def told_in_utc(rows: pa.RecordBatch, zone: dt.tzinfo | None) -> pa.RecordBatch:
    """Rows whose event_time is that of a zone, with UTC in its place; each time that occurs is
    turned once.
    """
    if zone is None:
        return rows
    place = rows.schema.get_field_index("event_time")
    met = rows.column(place).dictionary_encode()
    utc = pa.array([None if time is None else in_utc(time, zone) for time in met.dictionary.to_pylist()], pa.string())
    return rows.set_column(place, rows.schema.field(place), utc.take(met.indices))


def _number(column: pa.Array, name: str, problems: dict[int, str]) -> pa.Array:
    try:
        made = column.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        made = pa.array(
            [_read(value, name, place, problems) for place, value in enumerate(column.to_pylist())], pa.int64()
        )
    if name == "record_id" and made.null_count:
        for place in pc.indices_nonzero(made.is_null()).to_pylist():
            problems.setdefault(place, "record_id is NULL; it must be a number.")
    return made


def _read(value: Any, name: str, place: int, problems: dict[int, str]) -> int | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    match = _whole(text)
    number = int(match[1]) if match and len(match[1]) < 40 else None
    if number is not None and number in _INT64:
        return number
    # Exports write what is NULL in this way, and nothing depends on it.
    if name == TRANSACTION and not text:
        return None
    told = f"{name} is {shortened(text)!r}; only {MEANT[name]}."
    # Without a record_id nothing else can be said of the row.
    if name == "record_id" or place not in problems:
        problems[place] = told
    return None


def _text(column: pa.Array, name: str, problems: dict[int, str]) -> pa.Array:
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        made = column if column.type == pa.string() else column.cast(pa.string())
        made.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return pa.array(
            [_text_of(value, name, place, problems) for place, value in enumerate(_raw(column))], pa.string()
        )
    return made


def _raw(column: pa.Array) -> list[Any]:
    """The values; texts as bytes, for they may be none."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return list(column.cast(pa.large_binary()).to_pylist())
    return list(column.to_pylist())


def text_of(value: Any) -> str:
    """A value that is no text as text: numbers and times as databases write them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _text_of(value: Any, name: str, place: int, problems: dict[int, str]) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return text_of(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        problems.setdefault(place, f"{name} is not UTF-8 text.")
        return None
