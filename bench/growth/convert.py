"""What converting a row costs when there is more of everything: one process of the local engine, from Parquet to files."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from bench.backlog import temporary_folder
from bench.growth.series import contestant, targets
from bench.growth.shape import CHARACTERS, WAITING, Shape, shapes
from bench.measure import Benchmark, Contestant
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, TableFiles, Target
from eventlog.sql.names import NEW_ORDER
from eventlog.xds.write import XdsFormat

ROWS: Final = 100_000
QUICK: Final = 100
ONCE: Final = 1_000_000
GROUP_CHARACTERS: Final = 4_000_000
"""Characters of a row group at most, and so of the rows that this process holds while it writes them."""
OTHERS: Final[dict[str, Target]] = {"change tables": TableFiles(), "messages": MessageFiles()}
"""Forms besides XDS, for which only the rows grow."""


class Archive:
    """Rows of a shape in a Parquet file, and the files that they become; both are gone when they were measured."""

    def __init__(self, shape: Shape, target: Target) -> None:
        self._shape = shape
        self._target = target
        self._folder = temporary_folder()

    @property
    def _source(self) -> Path:
        return self._folder / "log.parquet"

    def write(self) -> None:
        """Writes the file."""
        numbers = {"record_id": pa.int64(), "event_type": pa.int64()}
        schema = pa.schema([(name, numbers.get(name, pa.large_string())) for name in NEW_ORDER])
        at_once = max(1, min(20_000, GROUP_CHARACTERS // self._shape.characters))
        rows = self._shape.log_rows()
        with parquet.ParquetWriter(self._source, schema, compression="zstd") as writer:
            while group := list(islice(rows, at_once)):
                writer.write_table(pa.table([list(column) for column in zip(*group, strict=True)], schema=schema))

    def convert(self) -> None:
        """Converts it; every row is an event."""
        found = FilesInput(places=(str(self._source),))
        done = convert(
            Conversion(input=found, destination=self._folder / "out", catalog=self._shape.catalog, format=self._target),
            jobs=1,
        )
        if done.rows != self._shape.rows:
            raise AssertionError(f"{done.rows} of {self._shape.rows} rows were converted")

    def remove(self) -> None:
        """Gives the disk its room back."""
        shutil.rmtree(self._folder / "out", ignore_errors=True)
        self._source.unlink()


def benchmark(*, quick: bool) -> Benchmark:
    """From a thousand rows to ten million."""
    return Benchmark(
        name="growth.convert",
        question="what does converting a row cost, the more of everything there is?",
        unit="row",
        contestants=list(_contestants(quick=quick)),
        targets=targets,
        note=(
            "From a Parquet file to files that are durable, one process that runs already. Objects take turns, row by row. Where it is not"
            f" the rows that grow there are {ROWS:,}; for values the unit is {CHARACTERS} characters. {ONCE:,} rows and more ran once."
        ),
    )


def _contestants(*, quick: bool) -> Iterator[Contestant]:
    found = shapes(QUICK, most=2, least=1) if quick else shapes(ROWS, most=7, once_from=ONCE)
    for series, sizes in found.items():
        for shape in sizes:
            yield _contestant(f"{series}, XDS", shape, XdsFormat())
    for form, target in OTHERS.items():
        for shape in found[WAITING][:-1]:
            yield _contestant(f"{WAITING}, {form}", shape, target)


def _contestant(series: str, shape: Shape, target: Target) -> Contestant:
    archive = Archive(shape, target)
    return contestant(series, shape, prepare=archive.write, run=archive.convert, done=archive.remove)
