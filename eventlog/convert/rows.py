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

from eventlog.core.errors import shorten
from eventlog.core.model import Event, RowId, Transaction, Who
from eventlog.core.rules.meaning import MEANING, NOT_POSITIVE
from eventlog.core.rules.screen import Identities
from eventlog.core.schema import Catalog
from eventlog.core.times import in_utc
from eventlog.core.who import make_who
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION

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
    [(name, pa.int64() if name in NUMBERS else pa.string()) for name in (*STANDARD, TRANSACTION, CONTEXT)]
    + [(PROBLEM, pa.string())]
)
"""Rows of the input: the ten columns, the transaction that wrote the row and who the session said is behind it, or
NULL, and `problem`.
Only a row with a problem may have no record_id.
"""

PLACED: Final = ROWS.append(pa.field(OBJECT, pa.int64()))
"""Rows with their objects."""

_verdict = [(name, pa.string()) for name in ("status", "reason", "note")]
OUTCOMES: Final = pa.schema([("position", pa.int64()), *_verdict])
"""What became of every row; without a position where the row had no record_id."""

WRITTEN_OUTCOMES: Final = pa.schema([("position", pa.string()), *_verdict])
"""The same of a stream, whose positions are several numbers."""

STREAM_OUTCOMES: Final = pa.schema([("place", pa.int64()), *WRITTEN_OUTCOMES])
"""The same on the way, in the order of `place`."""


def events_of(rows: pa.RecordBatch | pa.Table, *, transactions: bool = False, who: bool = False) -> list[Event]:
    """Make events of rows without problems, in order, with their `transactions` and `who`.

    Texts that repeat are one string: their hashes are then computed once, and a chunk takes half of
    the memory.
    """
    transactions_of_rows: list[Transaction | None] = [None] * len(rows)
    if transactions:
        transactions_of_rows = _transactions(rows.column(TRANSACTION))
    people: list[Who | None] = _people(rows) if who else [None] * len(rows)
    columns = zip(
        # Positions are tuples, and `zip` of one column makes them.
        zip(rows.column("record_id").to_pylist(), strict=True),
        rows.column("event_type").to_pylist(),
        _read_repeated(rows.column("table_name")),
        _in_runs(rows.column("table_key")),
        _read_repeated(rows.column("column_name")),
        rows.column("old_value").to_pylist(),
        rows.column("new_value").to_pylist(),
        _read_repeated(rows.column("event_time")),
        _read_repeated(rows.column("perpetrator")),
        transactions_of_rows,
        people,
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
            who=person,
        )
        for position, kind, table, key, column, old, new, time, perpetrator, transaction, person in columns
    ]


def integers(column: pa.Array) -> memoryview:
    """Return the integers of a column without NULLs, as they stand in memory."""
    # An empty array may have no buffer at all.
    content = memoryview(column.buffers()[1]) if len(column) else memoryview(b"")
    # A slice shares the buffer of what it was cut from, and begins somewhere in it.
    return content.cast("q")[column.offset : column.offset + len(column)]


def one_batch(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    combined = pa.Table.from_batches(batches, schema=schema).combine_chunks().to_batches()
    # A table without rows has no batches.
    if not combined:
        return pa.RecordBatch.from_pylist([], schema=schema)
    return combined[0]


def uncut(pieces: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Cut one object's rows, in the order of record_id, anew: equal record_ids stay together."""
    held: pa.RecordBatch | None = None
    for piece in pieces:
        rows = piece if held is None else one_batch([held, piece], piece.schema)
        numbers = rows.column("record_id")
        # The last number may go on in the next piece: all rows with it are held back.
        last = len(rows) - 1
        while last > 0 and numbers[last].is_valid and numbers[last].equals(numbers[last - 1]):
            last -= 1
        if last > 0:
            yield rows.slice(0, last)
        held = rows.slice(max(last, 0))
    if held is not None:
        yield held


def _people(rows: pa.RecordBatch | pa.Table) -> list[Who | None]:
    """Make the originators of rows; rows of one session share one value."""
    pairs = list(zip(rows.column("perpetrator").to_pylist(), rows.column(CONTEXT).to_pylist(), strict=True))
    known = {pair: make_who(*pair) for pair in set(pairs)}
    return [known[pair] for pair in pairs]


def _transactions(column: pa.Array) -> list[Transaction | None]:
    """Make transactions of these numbers; equal numbers share one value."""
    numbers = column.to_pylist()
    known = {number: None if number is None else Transaction(id=number) for number in set(numbers)}
    return [known[number] for number in numbers]


def _read_repeated(column: pa.Array) -> list[str | None]:
    """Read the texts of a column in which each stands often."""
    if column.null_count == len(column):
        return [None] * len(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    texts: list[str | None] = encoded.dictionary.to_pylist()
    if len(texts) == 1:
        return texts * len(column)
    return [texts[code] for code in encoded.indices.to_pylist()]


def _in_runs(column: pa.Array) -> list[str | None]:
    """Read the texts of a column with runs of equal ones."""
    # An object's rows stand together, so there are many different keys, each in one run: a
    # dictionary would hash all of them.
    encoded = pc.run_end_encode(column, run_end_type=pa.int64())
    ends = encoded.run_ends.to_pylist()
    # Not strict: the last end is the begin of no run.
    runs = zip(encoded.values.to_pylist(), [0, *ends], ends, strict=False)
    return [text for text, start, end in runs for _ in range(start, end)]


ROW_KINDS = pa.array(
    [int(kind) for kind, meaning in MEANING.items() if meaning.row and kind is not None],
    pa.int64(),
)


class Placing:
    """Gives rows the numbers of their objects; keeps what it has looked up within one batch
    only.
    """

    def __init__(self, catalog: Catalog | None) -> None:
        self._identities = Identities(catalog)

    def place(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Give the rows of ROWS their objects: PLACED."""
        naming = [rows.column(name) for name in ("event_type", "table_name", "table_key")]
        objects = self.objects(*naming)
        return pa.RecordBatch.from_arrays([*rows.columns, objects], schema=PLACED)

    def objects(self, types: pa.Array, names: pa.Array, texts: pa.Array) -> pa.Array:
        """Find the numbers of the objects meant by these event types, table names and keys."""
        kinds = pc.fill_null(pc.is_in(types, value_set=ROW_KINDS), False)
        tables = _codes(names)
        keys = _codes(texts)
        table_count = len(tables.dictionary)
        # Each combination of key, table and row event is one integer, so that only those that
        # occur are looked at in Python, once each.
        combined = pc.add(pc.multiply(keys.indices, table_count * 2), pc.multiply(tables.indices, 2))
        codes = pc.add(combined, pc.cast(kinds, pa.int64())).dictionary_encode()
        table_names, key_texts = tables.dictionary.to_pylist(), keys.dictionary.to_pylist()
        numbers = [
            self.number_of(
                table_names[code // 2 % table_count],
                key_texts[code // 2 // table_count],
                row_event=code % 2 == 1,
            )
            for code in codes.dictionary.to_pylist()
        ]
        return pa.array(numbers, pa.int64()).take(codes.indices)

    def number_of(self, table: str | None, key: str | None, *, row_event: bool) -> int:
        """Return the number of the object these texts mean; others have a number of their own."""
        row = self._identities.row_id(table, key, row_event=row_event)
        if row is None:
            return _hash(f"?\0{table}\0{key}")
        return object_number(row)


def object_number(row: RowId) -> int:
    return _hash(f"{row.schema}\0{row.table}\0{row.key}")


def object_text(row: RowId) -> str:
    """Write an object in results: its table and its canonical key."""
    if row.schema:
        return f"{row.schema}.{row.table} {row.key}"
    return f"{row.table} {row.key}"


def bucket_of(objects: pa.Array, buckets: int) -> pa.Array:
    """Return the bucket of each object among `buckets`, a power of two."""
    return pc.bit_wise_and(objects, buckets - 1)


def _hash(text: str) -> int:
    """Hash a text quickly to 62 bits; the rules tell objects with the same apart."""
    data = text.encode("utf-8", "surrogatepass")
    # Not Python's own hash, which is another one in each process.
    return crc32(data) >> 1 << 31 ^ crc32(data[::-1])


def _codes(texts: pa.Array) -> Any:
    """Encode the texts with codes of 64 bits; NULL is a text of its own."""
    encoded = texts.dictionary_encode(null_encoding="encode")
    # Arrow's codes have 32 bits, too few for the products that they are used in.
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int64()), encoded.dictionary)


_whole = re.compile(r" *([+-]?\d+)(?:\.0*)? *", re.ASCII).fullmatch
_INT64 = range(-(2**63), 2**63)
MEANT: Final = {
    "record_id": "whole numbers identify a row",
    "event_type": "the numbers from 1 to 8 have a meaning",
    TRANSACTION: "whole numbers identify a transaction",
}


def shape_rows(columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """Shape columns into rows of ROWS."""
    problems: dict[int, str] = {}
    arrays = []
    for name in STANDARD:
        shape = _number if name in NUMBERS else _text
        arrays.append(shape(columns[name], name, problems))
    count = len(arrays[0])
    if TRANSACTION in columns:
        arrays.append(_number(columns[TRANSACTION], TRANSACTION, problems))
    else:
        arrays.append(pa.nulls(count, pa.int64()))
    if CONTEXT in columns:
        arrays.append(_text(columns[CONTEXT], CONTEXT, problems))
    else:
        arrays.append(pa.nulls(count, pa.string()))
    if problems:
        arrays.append(pa.array([problems.get(at) for at in range(count)], pa.string()))
    else:
        arrays.append(pa.nulls(count, pa.string()))
    return pa.RecordBatch.from_arrays(arrays, schema=ROWS)


def times_in_utc(rows: pa.RecordBatch, zone: dt.tzinfo | None) -> pa.RecordBatch:
    """Convert event_time from a zone to UTC; each different time is converted once."""
    if zone is None:
        return rows
    at = rows.schema.get_field_index("event_time")
    times = rows.column(at).dictionary_encode()
    in_zone = times.dictionary.to_pylist()
    utc = [None if time is None else in_utc(time, zone) for time in in_zone]
    column = pa.array(utc, pa.string()).take(times.indices)
    return rows.set_column(at, rows.schema.field(at), column)


def _number(column: pa.Array, name: str, problems: dict[int, str]) -> pa.Array:
    try:
        numbers = column.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        # Some value is no integer to Arrow; one by one `1.0` and ` 1 ` are, as exports write them.
        read = [_read(value, name, at, problems) for at, value in enumerate(column.to_pylist())]
        numbers = pa.array(read, pa.int64())
    if name == "record_id":
        if numbers.null_count:
            for at in pc.indices_nonzero(numbers.is_null()).to_pylist():
                problems.setdefault(at, "record_id is NULL; it must be a number.")
        for at in pc.indices_nonzero(pc.less_equal(numbers, 0)).to_pylist():
            problems.setdefault(at, NOT_POSITIVE.format(numbers[at].as_py()))
    return numbers


def _read(value: Any, name: str, index: int, problems: dict[int, str]) -> int | None:
    if value is None:
        return None
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
    match = _whole(text)
    # To read a million digits as a number takes Python minutes, or it refuses.
    if match and len(match[1]) < 40 and int(match[1]) in _INT64:
        return int(match[1])
    # Exports write what is NULL in this way, and nothing depends on it.
    if name == TRANSACTION and not text:
        return None
    # Without a record_id nothing else can be said of the row.
    if name == "record_id" or index not in problems:
        problems[index] = f"{name} is {shorten(text)!r}; only {MEANT[name]}."
    return None


def _text(column: pa.Array, name: str, problems: dict[int, str]) -> pa.Array:
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        texts = column if column.type == pa.string() else column.cast(pa.string())
        # Files may call bytes a string that are no UTF-8; Arrow looks only when it is told to.
        texts.validate(full=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        read = [_text_of(value, name, at, problems) for at, value in enumerate(_raw(column))]
        return pa.array(read, pa.string())
    return texts


def _raw(column: pa.Array) -> list[Any]:
    """Return the values of a column; texts as bytes, for they may be invalid."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return list(column.cast(pa.large_binary()).to_pylist())
    return list(column.to_pylist())


def text_of(value: Any) -> str:
    """Write a value as text: numbers and times as databases do."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        # Without an exponent, which `str` writes for very large and very small ones.
        return format(value, "f")
    return str(value)


def json_number(written: str) -> Decimal | str:
    """Read a JSON number with point or exponent. One of more than 100,000 digits stays text: twelve
    bytes would become a gigabyte, and an integer of it would take hours.
    """
    exponent = written.lower().partition("e")[2]
    return written if len(exponent.lstrip("+-0")) > 5 else Decimal(written)


def _text_of(value: Any, name: str, index: int, problems: dict[int, str]) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return text_of(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        problems.setdefault(index, f"{name} is not UTF-8 text.")
        return None
