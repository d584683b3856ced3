"""Finds a conversion's input files and cuts them into units, each of which one process reads on its
own.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from glob import iglob
from pathlib import Path, PurePath
from typing import IO, Any, Final, cast

from msgspec import Struct

from eventlog.convert.settings import LINE_BYTES, FilesInput
from eventlog.core.errors import DataError, UsageError
from eventlog.sql.names import CONTEXT, STANDARD, TRANSACTION

UNIT_ROWS: Final = 250_000
UNIT_BYTES: Final = 32_000_000
"""How much of a large file is a unit, where the file can be cut."""

LONGEST_HEADER_BYTES: Final = 1 << 16
BUFFER_BYTES: Final = 1 << 18
BATCH_BYTES: Final = 2_000_000
KINDS: Final = {".parquet": "parquet", ".jsonl": "lines", ".ndjson": "lines", ".json": "lines", ".csv": "csv"}


class Unit(Struct, frozen=True, kw_only=True):
    """A file or a part of one: row groups of Parquet, or bytes of a file of lines, from `start` up
    to `end`.
    """

    path: str
    kind: str
    packed: bool = False
    start: int = 0
    end: int | None = None
    rows: int | None = None
    size: int = 0
    line_limit: int = LINE_BYTES


def units(files: FilesInput) -> list[Unit]:
    """List the units of all input files by name; UsageError if a place has no such file."""
    all_units: list[Unit] = []
    limit = files.line_limit
    for path in files.paths:
        kind, packed, size = kind_of_file(path) or "", path.suffix == ".gz", path.stat().st_size
        if kind == "csv":
            _refuse_header(path, packed=packed)
        elif kind == "lines" and not packed:
            _refuse_form(path)
        if kind == "parquet":
            all_units += _row_groups(path)
        elif kind == "lines" and not packed:
            # Lines can be found from any place on. In CSV a line's end may stand inside of quotes, so
            # such a file is one unit; a packed one can be read only from its beginning.
            for start in range(0, max(size, 1), UNIT_BYTES):
                end = min(start + UNIT_BYTES, size)
                size_here = end - start
                unit = Unit(path=str(path), kind=kind, start=start, end=end, size=size_here, line_limit=limit)
                all_units.append(unit)
        else:
            # Rows of a log are about a quarter when they are packed.
            unpacked_size = size * 4 if packed else size
            unit = Unit(path=str(path), kind=kind, packed=packed, size=unpacked_size, line_limit=limit)
            all_units.append(unit)
    return all_units


def files_at(pattern: str) -> list[Path]:
    """List the files of rows that a place means; UsageError or DataError where there is none."""
    path = Path(pattern)
    if path.is_file():
        if kind_of_file(path) is None:
            kinds = "neither .parquet nor .jsonl nor .csv (the latter two also .gz)"
            raise UsageError(f"{pattern} is {kinds}; give it the ending of its form.")
        return [path]
    inside: Iterable[Path]
    if path.is_dir():
        inside = path.rglob("*")
    else:
        matching = iglob(pattern, recursive=True)  # noqa: PTH207 a Path takes no pattern from the root
        inside = map(Path, matching)
    files = [file for file in inside if file.is_file() and kind_of_file(file) and not _is_hidden(file, path)]
    if not files:
        message = f"There is no .parquet, .jsonl or .csv file at {pattern}"
        raise DataError(f"{message}; name one, or a folder that has some.")
    return files


def _is_hidden(file: Path, folder: Path) -> bool:
    """Return True for files being written, and for those other programs keep beside theirs."""
    # Only what is below the named folder: who names one in ~/.cache means it.
    below = Path(file.name)
    if folder.is_dir():
        below = file.relative_to(folder)
    return any(part.startswith((".", "_")) for part in below.parts)


def kind_of_file(path: PurePath) -> str | None:
    """Tell the kind of a file of rows from its name; None for other files."""
    is_packed = path.suffix == ".gz"
    kind = KINDS.get(path.with_suffix("").suffix.lower() if is_packed else path.suffix.lower())
    # Parquet is read from its end, which a packed file shows only when all of it is unpacked.
    if kind == "parquet" and is_packed:
        return None
    return kind


def _refuse_form(path: Path) -> None:
    """Refuse a file that is no UTF-8 text; its reader reports other faults."""
    from eventlog.core.file_forms import find_form

    try:
        with path.open("rb") as file:
            form = find_form(file.read(LONGEST_HEADER_BYTES))
    except OSError:
        return
    if form:
        raise DataError(f"{path} {form}.")


def _refuse_header(path: Path, *, packed: bool) -> None:
    """Refuse a CSV file without a column, before any reading; its reader tells other faults."""
    with suppress(OSError, EOFError, zlib.error), open_unit(Unit(path=str(path), kind="csv", packed=packed)) as file:
        refuse_header(file.readline(LONGEST_HEADER_BYTES), str(path))


def refuse_header(first_line: bytes, origin: str) -> None:
    """Refuse the first line of a CSV file if it does not name the columns."""
    from eventlog.core.file_forms import find_form

    if form := find_form(first_line):
        raise DataError(f"{origin} {form}.")
    try:
        first = first_line.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    if "\r" in first.rstrip("\r\n"):
        # Such a file is one line, which would be taken for the header of a log without rows.
        hint = "End each line with \\n or \\r\\n and begin again; nothing was published."
        raise DataError(f"{origin}: its lines end with a carriage return alone.", hint=hint)
    if first.strip():
        try:
            places_of(next(csv.reader([first])), origin)
        except DataError:
            _refuse_separator(origin, first)
            raise


def _refuse_separator(origin: str, header: str) -> None:
    """DataError where the names of the header are parted by something else than commas."""
    for separator, called in {";": "semicolons", "\t": "tabs", "|": "bars"}.items():
        names = {name.strip(' "').casefold() for name in header.strip().split(separator)}
        if len(names & {*STANDARD}) > 1:
            hint = "Write the file again with commas; nothing was published."
            raise DataError(f"{origin}: its columns are parted by {called}, and CSV has commas.", hint=hint)


def _row_groups(path: Path) -> Iterator[Unit]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        described: Any = parquet.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        raise describe_damage(path, error) from error
    places_of(described.schema.to_arrow_schema().names, str(path))
    start = rows = size = 0
    last = described.num_row_groups - 1
    for number in range(described.num_row_groups):
        group = described.row_group(number)
        rows, size = rows + group.num_rows, size + group.total_byte_size
        if rows >= UNIT_ROWS or size >= UNIT_BYTES or number == last:
            end = number + 1
            yield Unit(path=str(path), kind="parquet", start=start, end=end, rows=rows, size=size)
            start, rows, size = end, 0, 0


def places_of(names: Sequence[str], origin: str) -> dict[str, int]:
    """Find the ten columns, transaction and context; DataError names missing ones of the ten."""
    # Reversed, so that of two columns with one name the first counts.
    places = {name.strip().casefold(): at for at, name in reversed(list(enumerate(names)))}
    missing = [name for name in STANDARD if name not in places]
    if missing:
        hint = "It needs the ten columns of a log under their standard names, in any order."
        raise DataError(f"{origin} has no column {', '.join(missing)}.", hint=hint)
    return {name: places[name] for name in (*STANDARD, TRANSACTION, CONTEXT) if name in places}


def open_unit(unit: Unit) -> IO[bytes]:
    """Open a unit's file, unpacked."""
    if unit.packed:
        return cast("IO[bytes]", gzip.GzipFile(unit.path, "rb"))
    return Path(unit.path).open("rb", buffering=BUFFER_BYTES)


def rows_at_once(groups: Sequence[Any], most: int) -> int:
    """Choose how many rows of these Parquet groups to read together: fewer if they are long."""
    rows = sum(group.num_rows for group in groups) or 1
    row_bytes = sum(group.total_byte_size for group in groups) / rows
    return max(1, min(most, int(BATCH_BYTES / max(row_bytes, 1))))


def end_line(file: IO[bytes], begun: bytes, limit: int) -> bytes | None:
    """Read on to the end of a begun line; None if the line has more bytes than `limit`."""
    read = begun + file.readline(limit + 1)
    length = len(read) - read.rfind(b"\n", 0, len(begun)) - 1
    return None if length > limit + 1 else read


def line_number(unit: Unit, place: int) -> int:
    """Count the lines up to a byte of the unit's file, from 1; called only for a wrong line."""
    number = 1
    with open_unit(unit) as file:
        while place > 0 and (read := file.read(min(place, BUFFER_BYTES))):
            number += read.count(b"\n")
            place -= len(read)
    return number


def too_long(origin: str, line: int, limit: int) -> DataError:
    """Make the error for a line too long for memory."""
    hint = "Correct it, or allow longer ones with publisher.value_limit, and begin again; nothing was published."
    return DataError(f"{origin}, line {line}: it has more than {limit:,} bytes.", hint=hint)


def describe_damage(path: Path | str, error: Exception) -> DataError:
    """Make the error for a file that cannot be read as its kind."""
    # Messages of Arrow go over several lines.
    cause = getattr(error, "strerror", None) or " ".join(str(error).split()).rstrip(".") or type(error).__name__
    hint = "Correct it and begin again; nothing was published."
    return DataError(f"{path} cannot be read: {cause}.", hint=hint)
