"""Exports of LINTER's queue in bulk: any kind of file, any order of rows, every target."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from eventlog.convert.commit import Summary
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, MessageFiles, StreamInput, TableFiles, Target
from eventlog.core.model import Change, Refusal
from eventlog.core.rules import Options
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sources.linter.exports import export_row
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.rows import QueueRow
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sources.stream.images import decide_images
from eventlog.xds.write import XdsFormat
from eventlog_streams_tools.linter.emulator import EmulatedOperation
from tests.support.converting import elements_of, files_of, outcomes_of
from tests.support.linter import CHAIR, NUMBER, SCHEMA, TABLE, ended, insert, queued
from tests.support.linter import told as images_of
from tests.support.messages import CountedMessages

READING = LinterSettings(code_page="cp1251")
TARGETS: dict[str, Target] = {
    "xds": XdsFormat(),
    "rows": TableFiles(),
    "json": MessageFiles(),
    "avro": MessageFiles(settings=MessageSettings(encoding="avro")),
}


def update(tx: int) -> EmulatedOperation:
    return EmulatedOperation(transaction=tx, action=Action.UPDATE, table=NUMBER, rowid=7, before=TABLE, after=CHAIR)


OPERATIONS = [
    *(insert(1, 7), insert(2, 8), insert(3, 9), ended(2), update(1), insert(4, 10), ended(1)),
    *(insert(5, 11), ended(4, Action.ROLLBACK), insert(6, 12), ended(5)),
]
ROWS = queued(OPERATIONS)
"""Transactions 3 and 6 stay open, and 4 is rolled back."""


def shuffled(seed: int) -> list[dict[str, Any]]:
    rows: list[QueueRow] = list(ROWS)
    Random(seed).shuffle(rows)
    return [export_row(row) for row in rows]


def export(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write a file of the kind its name ends with."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def run(*places: Path, out: Path, target: Target, jobs: int = 1) -> Summary:
    source = StreamInput(places=tuple(map(str, places)), settings=READING)
    ordered = Conversion(input=source, destination=out, format=target, part_events=2, catalog=SCHEMA)
    return convert(ordered, jobs=jobs)


def changes() -> list[Change]:
    return list(decide_images(images_of(ROWS), SCHEMA, Options()).changes)


def test_a_queue_is_told_as_the_daemon_tells_it(tmp_path: Path) -> None:
    source = export(tmp_path / "queue.jsonl", shuffled(1))
    for name, target in TARGETS.items():
        done = run(source, out=tmp_path / name, target=target)
        assert (done.rows, done.changes, done.statuses, done.parts) == (4, 4, {"S": 4}, 2)
        assert done.notes == ("The queue ends with 2 open transactions: left out.",)
    opening, closing = XdsFormat().wrapping()
    written = [one for one in encode(XdsFormat(), changes(), SCHEMA) if not isinstance(one, Refusal)]
    assert elements_of(tmp_path / "xds") == "".join(
        one.body.decode().removeprefix(opening).removesuffix(closing) for one in written
    )
    files = sorted((tmp_path / "json" / "SHOP.T").iterdir())
    assert [line for file in files for line in file.read_bytes().splitlines()] == [
        message.value
        for one in encode(CountedMessages(body=False), changes(), SCHEMA)
        if isinstance(one, MessagesDocument)
        for message in one.messages
    ]
    rows = [row for file in sorted((tmp_path / "rows" / "SHOP.T__ct").glob("*.parquet")) for row in read(file)]
    assert [(row["header__change_oper"], row["ID"]) for row in rows] == [
        ("I", 8),
        ("I", 7),
        ("B", 7),
        ("U", 7),
        ("I", 11),
    ]
    assert [one["status"] for one in outcomes_of(tmp_path / "rows")] == ["S"] * 4


def read(file: Path) -> list[dict[str, Any]]:
    return list(parquet.read_table(file).to_pylist())


@pytest.mark.parametrize("name", TARGETS)
def test_kinds_of_files_orders_and_processes_do_not_show(tmp_path: Path, name: str) -> None:
    run(export(tmp_path / "a.jsonl", [export_row(row) for row in ROWS]), out=tmp_path / "one", target=TARGETS[name])
    for seed, kind in enumerate((".jsonl", ".csv", ".parquet")):
        rows = shuffled(seed)
        first, second = export(tmp_path / f"1{kind}", rows[:5]), export(tmp_path / f"2{kind}", rows[5:])
        run(first, second, out=tmp_path / kind, target=TARGETS[name], jobs=1 + seed % 2)
        assert files_of(tmp_path / kind) == files_of(tmp_path / "one")


def test_a_row_that_cannot_be_read_ends_the_conversion_at_its_place(tmp_path: Path) -> None:
    source = export(tmp_path / "queue.jsonl", [{**export_row(ROWS[0]), "LEN1": "many"}])
    done = run(source, out=tmp_path / "out", target=TARGETS["rows"])
    assert "queue.jsonl, row 1: LEN1 is 'many'" in (done.damage or "")
    assert (done.rows, done.changes) == (0, 0)
