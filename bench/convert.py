"""How fast `eventlog convert` makes XDS files of Parquet files, what a second process adds, and how little memory it takes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow import parquet

from bench.ending import at_end
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.rules import CATALOG, log_rows
from eventlog.core.schema_file import catalog_to_json
from eventlog.sql.names import NEW_ORDER

PROMISED: Final = 200_000
SECOND_PROCESS: Final = 1.7
MEMORY: Final = 300_000_000
GROUP_ROWS: Final = 20_000
LOOK: Final = 0.05
"""Seconds between two looks at the memory of the processes."""


def benchmark(*, quick: bool) -> Benchmark:
    """The command as a user calls it, Python's start included."""
    rows, many = (2_000, 4_000) if quick else (2_000_000, 10_000_000)
    folder = Path(tempfile.mkdtemp(prefix="eventlog-bench-"))
    at_end(shutil.rmtree, folder, ignore_errors=True)
    (folder / "schema.json").write_bytes(catalog_to_json(CATALOG))
    files = {number: log_file(folder / f"{number}.parquet", number) for number in (rows, many)}
    contestants = [
        Contestant(name="text without rules", run=partial(_written, files[rows], folder), units=rows, floor=True),
        *(
            Contestant(
                name=f"{jobs} process{'es' * (jobs > 1)}", run=partial(_converted, files[rows], jobs), units=rows
            )
            for jobs in (1, 2)
        ),
    ]
    return Benchmark(
        name="convert",
        question="how fast do Parquet files become XDS files?",
        unit="row",
        contestants=contestants,
        targets=partial(_targets, files=files),
        note=(
            "Per-field rows: each object is inserted (6 rows) and updated (2 rows). Whole processes, from Python's start to"
            " files that are durable; the floor reads the same columns and writes a line of text for each row, in their"
            " order. Memory is that of all processes together, pages that they share counted once."
        ),
    )


def log_file(path: Path, count: int) -> Path:
    """Rows of a log as an archive keeps them."""
    numbers = {"record_id": pa.int64(), "event_type": pa.int64()}
    schema = pa.schema([(name, numbers.get(name, pa.large_string())) for name in NEW_ORDER])
    rows = log_rows(count)
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(rows, GROUP_ROWS)):
            writer.write_table(pa.table([list(column) for column in zip(*group, strict=True)], schema=schema))
    return path


def _command(source: Path, jobs: int) -> Sequence[str]:
    words = ["--schema", "schema.json", "--out", "out", "--overwrite", "--engine", f"local[{jobs}]"]
    return [sys.executable, "-m", "eventlog", "convert", str(source), *words]


def _converted(source: Path, jobs: int) -> None:
    subprocess.run(_command(source, jobs), cwd=source.parent, check=True, capture_output=True)


def _written(source: Path, folder: Path) -> None:
    """The least that anybody would have to do with the rows in Python."""
    with parquet.ParquetFile(source) as file, (folder / "floor.txt").open("w") as out:
        for batch in file.iter_batches(GROUP_ROWS):
            columns = [
                batch.column(name).to_pylist() for name in ("record_id", "table_key", "column_name", "new_value")
            ]
            out.writelines(
                [f"{number} {key} {column}={new}\n" for number, key, column, new in zip(*columns, strict=True)]
            )


def _targets(timings: Timings, *, files: dict[int, Path]) -> list[Target]:
    one, two = timings["1 process"], timings["2 processes"]
    found = [
        Target(
            promise=f"{PROMISED:,} rows/s on one core",
            measured=f"{one.rate:,.0f} rows/s",
            reached=one.rate >= PROMISED,
        ),
        Target(
            promise=f"two processes at least {SECOND_PROCESS:g} times one",
            measured=f"{two.rate / one.rate:.2f} times",
            reached=two.rate >= SECOND_PROCESS * one.rate,
        ),
    ]
    return found + [_memory_target(rows, source) for rows, source in files.items()]


def _memory_target(rows: int, source: Path) -> Target:
    peak = _peak(source)
    return Target(
        promise=f"{rows:,} rows and two processes in less than {MEMORY / 1e6:.0f} MB",
        measured=f"{peak / 1e6:.0f} MB",
        reached=peak < MEMORY,
    )


def _peak(source: Path) -> int:
    """The most bytes that the command and its processes were seen to hold together."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(_command(source, 2), cwd=source.parent, stdout=quiet, stderr=quiet)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(_held, _family(process.pid))))
        time.sleep(LOOK)
    return peak


def _family(process: int) -> Iterator[int]:
    """A process and all that come from it, however far."""
    yield process
    try:
        children = [Path(task, "children").read_text() for task in Path(f"/proc/{process}/task").iterdir()]
    except OSError:
        return
    for child in " ".join(children).split():
        yield from _family(int(child))


def _held(process: int) -> int:
    """Bytes that a process holds, its share of what it shares with others counted."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
