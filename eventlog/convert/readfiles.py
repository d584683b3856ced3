"""Reads the units of input files into batches of rows: Parquet, JSON lines, CSV."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
from pyarrow import parquet

from eventlog.convert.csvtext import csv_columns
from eventlog.convert.inputs import BUFFER_BYTES, Unit, damaged, opened
from eventlog.convert.jsonlines import line_columns
from eventlog.convert.shape import places_of, shaped
from eventlog.convert.sheaf import BATCH_ROWS
from eventlog.core.errors import SourceError

BATCH_BYTES: Final = 8_000_000


def read(unit: Unit, statuses: str = "") -> Iterator[pa.RecordBatch]:
    """The rows (ROWS) of a unit; DataError names the file and the place that is damaged."""
    try:
        columns = _parquet(unit) if unit.kind == "parquet" else _text(unit)
        for found in columns:
            yield shaped(found, statuses)
    except (pa.ArrowInvalid, EOFError, gzip.BadGzipFile, zlib.error, UnicodeDecodeError) as error:
        raise damaged(unit.path, error) from error
    except FileNotFoundError as error:
        hint = "Somebody took it away meanwhile; begin again with what is there."
        raise SourceError(f"{unit.path} is gone.", hint=hint, may_pass=False) from error
    except OSError as error:  # Arrow tells damaged pages and what a disk refuses alike
        raise damaged(unit.path, error) from error


def _parquet(unit: Unit) -> Iterator[dict[str, pa.Array]]:
    with parquet.ParquetFile(unit.path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        names = file.schema_arrow.names
        places = places_of(names, unit.path)
        wanted = {name: names[place] for name, place in places.items()}
        groups = list(range(unit.start, unit.end or 0))
        rows = _batch_rows(file, groups)
        for batch in file.iter_batches(rows, row_groups=groups, columns=list(wanted.values()), use_threads=False):
            yield {name: batch.column(found) for name, found in wanted.items()}


def _batch_rows(file: Any, groups: list[int]) -> int:
    """Fewer rows at once where they are long."""
    described = [file.metadata.row_group(group) for group in groups]
    rows = sum(group.num_rows for group in described) or 1
    each = sum(group.total_byte_size for group in described) / rows
    return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(each, 1))))


def _text(unit: Unit) -> Iterator[dict[str, pa.Array]]:
    with opened(unit) as file:
        yield from csv_columns(file, unit.path) if unit.kind == "csv" else line_columns(file, unit)
