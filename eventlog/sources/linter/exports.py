"""Queue rows from exported files: JSON lines, CSV and Parquet with the documented column names, in
the queue's order.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, cast

import msgspec

from eventlog.core.errors import DataError, UsageError, shorten
from eventlog.core.file_forms import find_form
from eventlog.sources.linter.rows import BINARY, COLUMNS, TEXTS, QueueRow, queue_row
from eventlog.sources.linter.settings import ReadingSettings, Variant
from eventlog.sources.stream.spill import spill_to
from eventlog.sources.stream.transactions import Spill

NULL: Final = "\\N"
KINDS: Final = {".jsonl": "lines", ".ndjson": "lines", ".json": "lines", ".csv": "csv", ".parquet": "parquet"}
CHUNK_ROWS: Final = 1000
"""Rows of a sorted run that are in memory at once."""

LINE_BYTES: Final = 64_000_000
"""How long a line may be; DATA of an operation goes over several rows."""

Columns = Mapping[str, Any]


def export_rows(paths: Sequence[Path], settings: ReadingSettings) -> Iterator[QueueRow]:
    """Yield the rows of all files by SYSLOG_ADDR, those of a receiving queue as they arrived."""
    rows = (row for path in paths for row in file_rows(path, settings))
    if settings.variant == "receiving":  # it has no SYSLOG_ADDR to be sorted by
        return read_arrived(rows)
    return in_order(rows, settings.spill_bytes)


def file_rows(path: Path, settings: ReadingSettings) -> Iterator[QueueRow]:
    """Yield the rows of a file in its order; raise DataError with the place of damage."""
    kind = kind_of(path)
    if kind is None:
        raise UsageError(
            f"{path} is neither .jsonl nor .csv (both also .gz) nor .parquet; give it the ending of its form."
        )
    records = {"lines": _lines, "csv": _csv, "parquet": _parquet}[kind](path)
    number = 0
    try:
        for number, record in records:
            yield _row(record, number, settings)
    except (DataError, msgspec.DecodeError, csv.Error, UnicodeDecodeError, RecursionError, OverflowError) as error:
        # A DataError is about the row that was read last, any other error about the one behind it.
        at = number if isinstance(error, DataError) else number + 1
        raise DataError(f"{path}, row {at}: {str(error).rstrip('.')}.") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {str(error).rstrip('.')}.") from error


def kind_of(path: Path) -> str | None:
    """Return the kind of file, by its name."""
    named = path.with_suffix("") if path.suffix == ".gz" else path
    return KINDS.get(named.suffix.lower())


def read_arrived(rows: Iterable[QueueRow]) -> Iterator[QueueRow]:
    """Yield rows without SYSLOG_ADDR; continuations get the place of their operation's first row."""
    # A receiving queue has no address that the rows of one operation share, so the first one's
    # place is theirs; EXTDATA says which rows go on (linter-dispatch-queue.md 3).
    first: dict[tuple[str, int], int] = {}
    for row in rows:
        tx = row.dbnode, row.transact_id
        if row.extdata:
            row = msgspec.structs.replace(row, syslog_addr=first.get(tx, row.syslog_addr))  # noqa: PLW2901  the same row
        else:
            first[tx] = row.syslog_addr
        yield row


def in_order(rows: Iterable[QueueRow], limit: int) -> Iterator[QueueRow]:
    """Sort rows by address in bounded memory: an export without ORDER BY is in any order."""
    rows = iter(rows)
    spill: Spill[QueueRow] | None = None
    runs: list[list[int]] = []
    while run := _run(rows, limit):
        # The first run is written only when there is a second: most exports fit into memory.
        if spill is None:
            following = next(rows, None)
            if following is None:
                yield from run
                return
            spill = spill_to(QueueRow)()
            runs = [_write_run(spill, run)]
            run = sorted([following, *_run(rows, limit)], key=_order)
        runs.append(_write_run(spill, run))
    if spill is not None:
        yield from merge(*[_read(spill, run) for run in runs], key=_order)
        spill.close()


def export_row(row: QueueRow) -> dict[str, Any]:
    """Write a row for an export, binary columns in hexadecimal."""
    values = msgspec.structs.astuple(row)
    return {
        name: value.hex() if isinstance(value, bytes) else value for name, value in zip(COLUMNS, values, strict=True)
    }


def _run(rows: Iterator[QueueRow], limit: int) -> list[QueueRow]:
    """Return the next rows that fit into memory, sorted."""
    run: list[QueueRow] = []
    held = 0
    for row in rows:
        run.append(row)
        held += len(row.data) + 600  # about what a row takes beside its DATA
        if held > limit:
            break
    return sorted(run, key=_order)


def _order(row: QueueRow) -> tuple[int, int]:
    return row.syslog_addr, row.extdata


def _write_run(spill: Spill[QueueRow], run: list[QueueRow]) -> list[int]:
    rows = iter(run)
    numbers = []
    while chunk := list(islice(rows, CHUNK_ROWS)):
        numbers.append(spill.write([(row.syslog_addr, row) for row in chunk]))
    return numbers


def _read(spill: Spill[QueueRow], run: list[int]) -> Iterator[QueueRow]:
    for chunk in run:
        for _, row in spill.read(chunk):
            yield row


def _row(record: Columns, number: int, settings: ReadingSettings) -> QueueRow:
    values = {name.upper(): value for name, value in record.items()}
    if settings.variant == "receiving":
        values["SYSLOG_ADDR"] = number  # of the row in its file, the only order that there is
    missing = [name for name in _list_needed(settings.variant) if name not in values]
    if missing:
        raise DataError(f"the column {missing[0]} is missing")
    typed = {name: _read_number(name, values.get(name)) for name in COLUMNS}
    if typed["TYP"] is None:
        raise DataError("TYP is NULL, so nothing says what the row means")
    return queue_row(list(typed.values()), settings.names_code_page)


def _list_needed(variant: Variant) -> tuple[str, ...]:
    always = ("OPER_DATE", "TRANSACT_ID", "TYP", "TABNUM_SRC", "LEN1", "LEN2", "DATA")
    if variant == "receiving":
        return always
    return (*always, "SYSLOG_ADDR", "EXTDATA")


def _read_number(name: str, value: Any) -> Any:
    """Read a number, perhaps written as text: not all programs can hold 64 bits."""
    if isinstance(value, str) and name not in BINARY and name not in TEXTS:
        try:
            return int(value) if value.strip() else None  # a CSV without quotes has no other NULL
        except ValueError:
            raise DataError(f"{name} is {value!r}, which is no number") from None
    if value is None:
        return None
    if name in BINARY or name in TEXTS:
        if not isinstance(value, str | bytes):
            raise DataError(f"{name} is {shorten(repr(value), 40)}, which is no text")
    elif type(value) is not int:
        raise DataError(f"{name} is {shorten(repr(value), 40)}, which is no number")
    return value


def _lines(path: Path) -> Iterator[tuple[int, Columns]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    with _open(path) as file:
        for number, line in enumerate(_each_line(file), 1):
            if line.strip():
                yield number, decoder.decode(line)


def _csv(path: Path) -> Iterator[tuple[int, Columns]]:
    with _open(path) as file:
        # Editors on Windows begin a text with a mark.
        texts = (line.decode("utf-8-sig") for line in _each_line(file))
        for number, record in enumerate(csv.DictReader(texts, strict=True), 1):
            # A field behind the last column has no name.
            yield number, {name: None if value == NULL else value for name, value in record.items() if name}


def _each_line(file: IO[bytes]) -> Iterator[bytes]:
    begins = True
    while line := file.readline(LINE_BYTES + 1):
        if len(line) > LINE_BYTES:
            raise OverflowError(f"the line has more than {LINE_BYTES:,} bytes")
        if begins and (form := find_form(line)):
            raise OverflowError(f"the file {form}")
        begins = False
        yield line


def _parquet(path: Path) -> Iterator[tuple[int, Columns]]:
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(CHUNK_ROWS):
                for record in batch.to_pylist():
                    number += 1
                    yield number, record
    except pa.ArrowException as error:
        # The caller knows files that cannot be read, and need not know Arrow.
        raise OSError(str(error)) from error


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")
