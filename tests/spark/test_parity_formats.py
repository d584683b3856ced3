"""Spark writes captured streams in each form as the local engine does, byte for byte; random histories: test_parity.py."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventlog.convert import local, streams
from eventlog.convert.commit import WORK
from eventlog.convert.sending import SENDING
from eventlog.convert.settings import (
    Conversion,
    MessageFiles,
    StreamInput,
    TableFiles,
    Target,
)
from eventlog.core.errors import UsageError
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFileSettings
from eventlog.sources.gbase.files import splits
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.linter.exports import export_row
from eventlog.sources.linter.settings import LinterSettings
from eventlog.xds.write import XdsFormat
from eventlog_spark.convert import convert
from eventlog_streams_tools.gbase.emulator import reads, shop
from tests.spark.inputs import order
from tests.support.changerows import CSV
from tests.support.converting import files_of
from tests.support.linter import SCHEMA, ended, insert, queued

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS: list[Target] = [
    TableFiles(settings=ChangeTableSettings(partition_every=60)),
    TableFiles(files=CSV),
    TableFiles(files=RowFileSettings(preset="qlik").choose_files("json")),
    MessageFiles(settings=MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta")),
    MessageFiles(settings=MessageSettings(topic="all", encoding="avro")),
]


def both(place: Path, source: StreamInput, form: Target, **known: object) -> dict[str, bytes]:
    """What both engines make of a stream, which is the same."""
    told = {"input": source, "format": form, "part_events": 40, **known}
    here = local.convert(Conversion(destination=place / "here", **told), jobs=1)  # type: ignore[arg-type]  # a test's own words
    assert convert(Conversion(destination=place / "there", **told)) == here  # type: ignore[arg-type]  # the same words
    assert files_of(place / "there") == files_of(place / "here")
    return files_of(place / "here")


@pytest.mark.parametrize("form", [XdsFormat(), TableFiles(), FORMS[3]])
def test_streams_of_gbase(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: Target) -> None:
    monkeypatch.setattr(streams, "splits", partial(splits, size=1))
    stream = tmp_path / "capture.bin"
    stream.write_bytes(b"".join(reads(shop(400, seed=3))) + b"\xff" * 40)
    assert len(splits(stream, size=1)) > 3
    settings_there = GBaseSettings(
        tables={"1": "shop.customer", "2": "shop.purchase"},
        keys={"shop.customer": ("id",), "shop.purchase": ("id",)},
    )
    made = both(tmp_path, StreamInput(places=(str(stream),), settings=settings_there), form)
    told = json.loads(made["_DAMAGED"])
    assert "capture.bin, byte" in told["damage"]
    assert told["changes"] > 200


def test_queues_of_linter(spark: SparkSession, tmp_path: Path) -> None:
    rows = [export_row(row) for row in queued([insert(1, 7), insert(2, 8), ended(2), insert(3, 9), ended(1)])]
    rows.reverse()
    (tmp_path / "queue.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = StreamInput(places=(str(tmp_path / "queue.jsonl"),), settings=LinterSettings(code_page="cp1251"))
    made = both(tmp_path, source, TableFiles(), catalog=SCHEMA)
    assert json.loads(made["_SUCCESS"])["changes"] == 2


def test_the_work_of_a_sending_that_was_interrupted_is_not_taken_away(tmp_path: Path) -> None:
    note = tmp_path / "out" / WORK / "order" / SENDING
    note.parent.mkdir(parents=True)
    note.write_text('{"after": ""}')
    with pytest.raises(UsageError, match="interrupted while it was sent"):
        convert(order(tmp_path, tmp_path / "out"))
    assert note.exists()
