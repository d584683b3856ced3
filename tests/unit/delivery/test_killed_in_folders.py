"""A publisher that is killed at any step in a folder, and whose rows become fewer until the next one comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from eventlog.core.rules import Options
from eventlog.core.seams import Format, Sink
from eventlog.delivery.output import Output
from eventlog.delivery.pipeline import Pipeline
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.files import FileSink
from eventlog.xds.write import XdsFormat
from tests.support.memory import MemorySource, inserts
from tests.support.sinks import KilledError, dying, opened, tenure

Read = Callable[[Path], Sequence[int]]
Made = tuple[Format, Callable[[Path], Sink], Read]


def elements(folder: Path) -> list[int]:
    """The objects in documents."""
    paths = sorted(folder.glob("*.xml"))
    return [int(key) for path in paths for key in re.findall(r"<association>idu=(\d+),", path.read_text())]


def rows(folder: Path) -> list[int]:
    """The objects in change tables, whose numbers are all different."""
    told = [row for path in sorted(folder.rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()]
    assert len({row["header__change_seq"] for row in told}) == len(told)
    return [row["idu"] for row in told]


KINDS: dict[str, Made] = {
    "one document": (XdsFormat(), lambda folder: FileSink(folder, ".xml"), elements),
    "documents": (XdsFormat(batch_size=1), lambda folder: FileSink(folder, ".xml"), elements),
    "change tables": (ChangeTableFormat(rows_of_a_document=1), ChangeTableFiles, rows),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gone", [0, 1])
def test_each_row_is_published_once(tmp_path: Path, kind: str, gone: int) -> None:
    form, sink_in, read = KINDS[kind]
    for before in count(1):
        folder = tmp_path / str(before)
        source, sink = MemorySource([], inserts(3)), opened(sink_in(folder), tenure())
        with dying(before) as died, suppress(KilledError):
            pipeline(source, form, sink).go_round()
        source.batch = replace(source.batch, events=inserts(3)[gone:])
        if not source.settled:
            pipeline(source, form, opened(sink_in(folder), tenure(2))).go_round()
        assert sorted(read(folder)) in ([1, 2, 3], [1, 2, 3][gone:])
        assert not list(folder.rglob("*.part"))
        if not died.happened:
            return


def pipeline(source: MemorySource, form: Format, sink: Sink) -> Pipeline:
    output = Output(format=form, sink=sink)
    return Pipeline(source=source, outputs=[output], options=Options())
