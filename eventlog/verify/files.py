"""What folders of change tables hold: files of change rows and of full loads, in the order in which
they were written.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from eventlog.compare.sides import Compared, ComparedSide, Key
from eventlog.core.errors import DataError
from eventlog.core.schema import Table
from eventlog.qlik.change_tables.rows import folder_of
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.sinks.change_files.dfm import APART
from eventlog.sinks.change_files.settings import RowFiles
from eventlog.verify.history import FoldedChanges, cells_of, octets, origin_of, read_hex
from eventlog.verify.targets import PIECE_ROWS, PlainTarget, pieces

Rows = Iterator[tuple[Any, ...]]

LOAD: Final = "LOAD"
"""How the names of files of a full load begin."""


class FileTarget(PlainTarget):
    """The change tables of a folder: what the rows of their files add up to."""

    def __init__(self, folder: Path, form: RowFiles, settings: ChangeTableSettings) -> None:
        self._folder = folder
        self._form = form
        self._settings = settings

    def columns(self, table: Table) -> frozenset[str] | None:
        names = [name for file in self._files(table) for name in self._names(file)]
        # None without a file: then the output has nothing of the table.
        return frozenset(name.casefold() for name in names) or None

    def side(self, table: Table, compared: Compared) -> ComparedSide:
        files = self._files(table)
        # Files of a table may have been written when it had other columns.
        all_names = dict.fromkeys(name for file in files for name in self._names(file))
        folded = FoldedChanges(compared, list(all_names))
        for file in files:
            names = self._names(file)
            rows = self._rows(file, names, compared)
            if file.name.startswith(LOAD):
                folded.load(dict(zip(names, row, strict=True)) for row in rows)
                continue
            history = origin_of(names, self._settings.prefix, compared, file)
            sequence = itemgetter(names.index(history.headers["change_seq"]))
            for piece in pieces(rows, sequence):
                folded.take([history.change_row(row) for row in piece])
        return folded.side

    def behind(self, table: Table, compared: Compared, keys: Sequence[Key]) -> frozenset[Key]:
        return frozenset()

    def _files(self, table: Table) -> list[Path]:
        """List the files of a table. Their names rise; those of full loads say nothing of others, so their
        times count there.
        """
        changes = self._of(folder_of(table, f"{table.name}{self._settings.suffix}"))
        loads = self._of(folder_of(table, table.name))
        if not loads:
            return sorted(changes, key=lambda file: file.name)
        return sorted([*loads, *changes], key=lambda file: (file.stat().st_mtime_ns, file.name))

    def _of(self, folder: str) -> list[Path]:
        files = []
        for file in (self._folder / folder).rglob(f"*.{self._form.ending}"):
            # So begin the names of what is being written, and of what others keep beside.
            parts = file.relative_to(self._folder).parts
            if file.is_file() and not any(part.startswith(("_", ".")) for part in parts):
                files.append(file)
        return files

    def _names(self, file: Path) -> list[str]:
        """Name the columns of a file, from its description if the file does not name them."""
        if self._form.format == "parquet":
            from pyarrow import parquet

            return list(_try_reading(file, lambda: parquet.read_schema(file)).names)
        if self._form.format == "csv" and self._form.header:
            return [name or "" for name in next(self._cells(file), [])]
        stem = file.name.removesuffix(f".{self._form.ending}")
        paths = (file.parent / f"{stem}.dfm", file.parent / APART / f"{stem}.dfm")
        described = next((path for path in paths if path.exists()), None)
        if described is None:
            otherwise = "set row_files.header = true and publish again"
            raise DataError(
                f"{file} has no description beside it, which would name its columns.",
                hint=f"Put the file {stem}.dfm back, or {otherwise}.",
            )
        description = _try_reading(described, lambda: json.loads(described.read_bytes()))
        return [column["name"] for column in description["dataInfo"]["columns"]]

    def _rows(self, file: Path, names: Sequence[str], compared: Compared) -> Rows:
        if self._form.format == "parquet":
            from pyarrow import parquet

            opened = _try_reading(file, lambda: parquet.ParquetFile(file))
            for batch in opened.iter_batches(PIECE_ROWS, use_threads=False):
                yield from zip(*map(cells_of, batch.columns), strict=True)
        elif self._form.format == "json":
            hexed = octets(compared)
            with self._open(file) as lines:
                for line in lines:
                    row = json.loads(line)
                    cells = [read_hex(row.get(name)) if name.casefold() in hexed else row.get(name) for name in names]
                    yield tuple(cells)
        else:
            for number, cells in enumerate(self._cells(file)):
                # The first line is the header.
                if number or not self._form.header:
                    yield tuple(cells)

    def _cells(self, file: Path) -> Iterator[list[str | None]]:
        """Yield the lines of a CSV file: an unquoted NULL is NULL."""
        quote, null = self._form.quote, self._form.null_value
        q, d = re.escape(quote), re.escape(self._form.delimiter)
        cell = re.compile(rf"(?:{q}((?:[^{q}]|{q}{q})*){q}|([^{d}\n]*))({d}|\n|\Z)")
        with self._open(file) as lines:
            record = ""
            for line in lines:
                record += line
                # A text with a line break in it goes on.
                if record.count(quote) % 2:
                    continue
                cells: list[str | None] = []
                for match in _each(cell, record.removesuffix("\n")):
                    quoted, plain = match[1], match[2]
                    if quoted is not None:
                        cells.append(quoted.replace(quote * 2, quote))
                    else:
                        cells.append(None if plain == null else plain)
                yield cells
                record = ""

    def _open(self, file: Path) -> Any:
        if self._form.gzip:
            # Only \n ends a line; a \r is a part of a value, and stays.
            return gzip.open(file, "rt", encoding="utf-8", errors="surrogatepass", newline="\n")
        return file.open(encoding="utf-8", errors="surrogatepass", newline="\n")


def _each(cell: re.Pattern[str], line: str) -> Iterator[re.Match[str]]:
    # Not `finditer`, which would find an empty cell more behind the last one.
    at = 0
    while (match := cell.match(line, at)) is not None:
        yield match
        at = match.end()
        if not match[3]:
            return


def _try_reading(file: Path, reading: Callable[[], Any]) -> Any:
    try:
        return reading()
    except (OSError, ValueError) as error:
        # Errors of pyarrow are of these classes too.
        cause = " ".join(str(error).split()).rstrip(".")
        raise DataError(f"{file} cannot be read: {cause}.") from None
