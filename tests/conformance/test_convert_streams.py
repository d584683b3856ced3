"""Captured streams in bulk: what their images tell, in every target, in one piece or in many, whole or damaged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import fastavro
import pytest
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert import streams
from eventlog.convert.commit import Summary
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, MessageFiles, StreamInput, TableFiles, Target
from eventlog.core.model import Change, Refusal
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.row_files import csv_lines
from eventlog.sources.gbase.files import splits
from eventlog.sources.gbase.images import images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.images import decide_images
from eventlog.xds.write import XdsFormat
from eventlog_streams_tools.gbase.emulator import buffers, reads, record, row_record, shop, table_record
from tests.support.changerows import CSV
from tests.support.converting import elements_of, files_of
from tests.support.gbase_streams import OWN, T1, begin, commit, insert
from tests.support.messages import CountedMessages

SHOP = GBaseSettings(
    tables={"1": "shop.customer", "2": "shop.purchase"},
    keys={"shop.customer": ("id",), "shop.purchase": ("id",)},
)
STREAM = b"".join(reads(shop(400, seed=3)))
ROWS = TableFiles(files=CSV)
JSON = MessageFiles()
AVRO = MessageFiles(settings=MessageSettings(encoding="avro", names="map"))
TARGETS: dict[str, Target] = {"xds": XdsFormat(), "rows": ROWS, "json": JSON, "avro": AVRO}


@pytest.fixture
def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut files at every place without an open transaction."""
    monkeypatch.setattr(streams, "splits", partial(splits, size=1))


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write(tmp_path / "capture.bin", STREAM)


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def run(
    *places: Path,
    out: Path,
    target: Target,
    jobs: int = 1,
    own: GBaseSettings = SHOP,
    part_events: int = 37,
    known: Catalog | None = None,
) -> Summary:
    source = StreamInput(places=tuple(map(str, places)), settings=own)
    ordered = Conversion(
        input=source, destination=out, format=target, part_events=part_events, catalog=known, overwrite=True
    )
    return convert(ordered, jobs=jobs)


def told(*pieces: bytes, own: GBaseSettings = SHOP) -> Iterator[tuple[list[Change], Catalog]]:
    """Yield the stream's changes as the daemon gets them, with their tables."""
    for batch in images(pieces, own):
        assert batch.catalog is not None
        yield decide_images(batch.images, batch.catalog, Options()).changes, batch.catalog


def test_a_stream_is_told_as_the_daemon_tells_it(capture: Path, tmp_path: Path) -> None:
    batches = list(told(STREAM))
    changes, catalog = [change for several, _ in batches for change in several], batches[-1][1]
    for name, target in TARGETS.items():
        run(capture, out=tmp_path / name, target=target)
    written = [one for one in encode(XdsFormat(), changes, catalog) if not isinstance(one, Refusal)]
    opening, closing = XdsFormat().wrapping()
    assert elements_of(tmp_path / "xds") == "".join(
        one.body.decode().removeprefix(opening).removesuffix(closing) for one in written
    )
    documents = [one for one in encode(ChangeTableFormat(), changes, catalog) if isinstance(one, RowsDocument)]
    for table in ("customer", "purchase"):
        blocks = [block for one in documents for block in one.blocks if block.table.name == table]
        expected = b"".join(csv_lines(block.columns, block.cells, CSV) for block in blocks)
        files = sorted((tmp_path / "rows" / f"shop.{table}__ct").glob("*.csv"))
        assert len(files) > 2
        assert b"".join(file.read_bytes().partition(b"\n")[2] for file in files) == expected
    values = [
        json.loads(message.value or b"")
        for one in encode(CountedMessages(body=False), changes, catalog)
        if isinstance(one, MessagesDocument)
        for message in one.messages
    ]
    found = [json.loads(line) for file in (tmp_path / "json").glob("shop.*/part-*.jsonl") for line in lines(file)]
    assert sorted(found, key=sequence) == values
    read = [one for file in (tmp_path / "avro").glob("shop.*/part-*.avro") for one in records(file)]
    assert sorted(map(sequence, read)) == [sequence(value) for value in values]


@pytest.mark.parametrize("label_images", [1, 3])
def test_transactions_are_counted_whatever_of_them_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, label_images: int
) -> None:
    monkeypatch.setattr(streams, "LABEL_IMAGES", label_images)
    emptied = partial(record, CdcRecord.TRUNCATE)  # messages cannot say it
    first = [begin(1), insert(2, 1), emptied(3, 7, 5), insert(4, 2), emptied(5, 7, 5), commit(6)]
    others = [begin(7), insert(8, 3), commit(9), begin(10), emptied(11, 7, 5), commit(12)]
    stream = write(tmp_path / "s.bin", b"".join([table_record(T1), *first, *others]))
    done = run(stream, out=tmp_path / "out", target=JSON, own=OWN)
    assert done.outcomes["E refused"] == 3
    found = [json.loads(line) for file in (tmp_path / "out").glob("*.t1/part-*.jsonl") for line in lines(file)]
    assert [
        (one["data"]["c1"], one["headers"]["transactionEventCounter"], one["headers"]["transactionLastEvent"])
        for one in sorted(found, key=sequence)
    ] == [(1, 1, False), (2, 2, True), (3, 1, True)]


def sequence(value: dict[str, Any]) -> str:
    return str(value["headers"]["changeSequence"])


def lines(file: Path) -> list[bytes]:
    return file.read_bytes().splitlines()


def records(file: Path) -> list[dict[str, Any]]:
    with file.open("rb") as opened:
        return [one for one in fastavro.reader(opened) if isinstance(one, dict)]


@pytest.mark.parametrize("name", TARGETS)
def test_pieces_and_processes_do_not_show(
    capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    one = run(capture, out=tmp_path / "one", target=TARGETS[name])
    whole = files_of(tmp_path / "one")
    monkeypatch.setattr(streams, "splits", partial(splits, size=1))
    assert len(splits(capture, size=1)) > 3
    for jobs in (1, 2):
        assert run(capture, out=tmp_path / f"cut{jobs}", target=TARGETS[name], jobs=jobs) == one
        assert files_of(tmp_path / f"cut{jobs}") == whole


@pytest.mark.usefixtures("cut_small")
@pytest.mark.parametrize("jobs", [1, 2])
def test_everything_before_damage_is_there_and_the_place_is_named(tmp_path: Path, jobs: int) -> None:
    good = table_record(T1) + begin(1) + insert(2, 1) + commit(3) + begin(4) + insert(5, 2) + commit(6)
    bad = good + begin(7) + b"\xff" * 30 + begin(8) + insert(9, 3) + commit(10)
    done = run(write(tmp_path / "bad.bin", bad), out=tmp_path / "bad", target=ROWS, jobs=jobs, own=OWN)
    assert f"bad.bin, byte {len(good + begin(7))}:" in (done.damage or "")
    assert (done.rows, done.changes) == (2, 2)
    assert run(write(tmp_path / "good.bin", good), out=tmp_path / "good", target=ROWS, own=OWN).damage is None
    assert tables(tmp_path / "bad") == tables(tmp_path / "good") != {}


def tables(out: Path) -> dict[str, bytes]:
    return {name: content for name, content in files_of(out).items() if "__ct/" in name}


def test_open_transactions_are_left_out_and_told(tmp_path: Path) -> None:
    stream = table_record(T1) + begin(1) + insert(2, 1) + commit(3) + begin(4, 8) + insert(5, 2, 8)
    done = run(write(tmp_path / "s.bin", stream), out=tmp_path / "out", target=ROWS, own=OWN)
    assert (done.changes, done.damage) == (1, None)
    assert any("1 open transaction" in note for note in done.notes)


WIDER = layout_of(5, "c1 integer, c3 date, c2 varchar(20,0)")
ALTERED = (
    *(table_record(T1), begin(1), insert(2, 1), commit(3)),
    *(
        table_record(WIDER),
        begin(4),
        row_record(CdcRecord.INSERT, 5, 7, WIDER, {"c1": 2, "c2": "b", "c3": None}),
        commit(6),
    ),
    *(table_record(T1), begin(7), insert(8, 3), commit(9)),
)


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_a_table_that_is_described_anew_has_files_for_each_of_its_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(streams, "splits", partial(splits, size=size))
    stream = write(tmp_path / "s.bin", b"".join(ALTERED))
    done = run(stream, out=tmp_path / "rows", target=TableFiles(), own=OWN, part_events=100)
    assert (done.changes, done.statuses) == (3, {"S": 3})
    files = {file.name: parquet.read_table(file) for file in (tmp_path / "rows" / "shop.t1__ct").glob("*.parquet")}
    assert {name: table.column("c1").to_pylist() for name, table in files.items()} == {
        "part-00000-0.parquet": [1, 3],
        "part-00000-1.parquet": [2],
    }
    assert ["c3" in table.column_names for _, table in sorted(files.items())] == [False, True]
    run(stream, out=tmp_path / "avro", target=AVRO, own=OWN, part_events=100)
    containers = {file.name: records(file) for file in (tmp_path / "avro" / "shop.t1").iterdir()}
    assert {name: [one["data"]["c1"] for one in found] for name, found in containers.items()} == {
        "part-00000-0.avro": [1, 3],
        "part-00000-1.avro": [2],
    }
    run(stream, out=tmp_path / "json", target=JSON, own=OWN, part_events=100)
    found = [json.loads(line) for line in lines(tmp_path / "json" / "shop.t1" / "part-00000.jsonl")]
    assert [one["data"]["c1"] for one in found] == [1, 2, 3]


def unknown(seq: int) -> bytes:
    """Make a row with a damaged record number."""
    return insert(seq, 9)[:12] + (45).to_bytes(4, "big") + insert(seq, 9)[16:]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_lost_record_is_no_success(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int) -> None:
    monkeypatch.setattr(streams, "splits", partial(splits, size=1))
    stream = table_record(T1) + begin(1) + insert(2, 1) + unknown(3) + commit(4) + begin(5) + insert(6, 2) + commit(7)
    done = run(write(tmp_path / "s.bin", stream), out=tmp_path / "out", target=ROWS, own=OWN, jobs=jobs)
    assert (done.changes, done.statuses) == (2, {"S": 2})
    assert (done.damage or "").startswith("Left out: 1 record that could not be understood.")
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    assert json.loads((tmp_path / "out" / "_DAMAGED").read_bytes())["damage"] == done.damage
    whole = table_record(T1) + begin(1) + insert(2, 1) + commit(4)
    run(write(tmp_path / "s.bin", whole), out=tmp_path / "out", target=ROWS, own=OWN, jobs=jobs)
    assert (tmp_path / "out" / "_SUCCESS").exists()
    assert not (tmp_path / "out" / "_DAMAGED").exists()


def test_reads_with_rubbish_that_cut_records_give_every_row_or_no_success(tmp_path: Path) -> None:
    run(write(tmp_path / "whole.bin", STREAM), out=tmp_path / "whole", target=ROWS)
    pieces = list(reads(shop(400, seed=3), cut=3000))
    text = "\n".join(one.hex() for one in buffers(pieces)).encode()
    dirty = replace(SHOP, dirty=True)
    done = run(write(tmp_path / "dirty.hex", text), out=tmp_path / "dirty", target=ROWS, own=dirty)
    assert (done.damage, tables(tmp_path / "dirty")) == (None, tables(tmp_path / "whole"))
    text = "\n".join(one.hex() for one in buffers([bytes(5000), *pieces])).encode()
    done = run(write(tmp_path / "dirty.hex", text), out=tmp_path / "cut", target=ROWS, own=dirty)
    assert done.damage is not None
    assert not (tmp_path / "cut" / "_SUCCESS").exists()
