"""Change tables and messages as DataFrames have the rows, the bytes and the numbers of the local engine and of the publisher."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import eventlog_spark
from eventlog.convert import local
from eventlog.convert.settings import TableFiles
from eventlog.convert.to_changes import changes_of
from eventlog.core.errors import UsageError
from eventlog.core.model import Refusal
from eventlog.policies import steps
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog_spark import numbering
from tests.spark.inputs import Row, many_histories, order, rows_of, write_rows
from tests.spark.test_frames import TIME, TYPES
from tests.support.strategies import CATALOG, History

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = [
    ChangeTableSettings(partition_every=60, mask="hex"),
    ChangeTableSettings(headers=("change_seq", "change_oper", "timestamp"), before_image=False),
]
MESSAGES = [
    MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta", tombstones=True),
    MessageSettings(topic="all", encoding="avro", avro_key=True),
]
AFTER = "2026010100000000" + "0" * 17 + "41"


def rows_in(folder: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of each change table that the local engine wrote, in their order."""
    found: dict[str, list[dict[str, object]]] = {}
    for part in sorted(folder.rglob("part-*.parquet")):
        found.setdefault(part.relative_to(folder).parts[0], []).extend(parquet.ParquetFile(part).read().to_pylist())
    return {name: sorted(rows, key=_place) for name, rows in found.items()}


def rows_of_frames(frames: dict[str, DataFrame]) -> dict[str, list[dict[str, object]]]:
    found = {name: frame.toArrow().to_pylist() for name, frame in frames.items()}
    return {name: sorted(rows, key=_place) for name, rows in found.items() if rows}


def _place(row: dict[str, object]) -> tuple[object, ...]:
    return row["header__change_seq"], row["header__change_oper"] != "B"


def published(
    changes: DataFrame, form: MessageSettings, after: str
) -> tuple[list[tuple[str, bytes | None, bytes | None]], set[str]]:
    """The messages that the publisher's format makes of changes in their order, and why it makes none of others."""
    told = sorted(
        changes_of(pa.table(changes.toArrow()).combine_chunks().to_batches()[0]), key=lambda one: one.positions[-1]
    )
    writer = MessageFormat(settings=form, body=False)
    found = list(writer.writer(CATALOG)(told))
    written = writer.bind([one for one in found if not isinstance(one, Refusal)], after)
    messages = [(one.topic, one.key, one.value) for document in written for one in document.messages]
    return messages, {one.note for one in found if isinstance(one, Refusal)}


@pytest.mark.in_turn
@settings(max_examples=3)
@given(many_histories(), st.sampled_from(TABLES), st.sampled_from(MESSAGES), st.integers(0, 2**32))
def test_random_histories(
    spark: SparkSession, history: History, tables: ChangeTableSettings, form: MessageSettings, seed: int
) -> None:
    rows = rows_of(history.events)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbering, "RANGE_BITS", 3)  # so that numbers go on from one stretch to the next
        place = Path(folder)
        (place / "in").mkdir()
        write_rows(place / "in" / "all.parquet", Random(seed).sample(rows, len(rows)))
        local.convert(order(place / "in", place / "here", format=TableFiles(settings=tables)), jobs=1)
        found = eventlog_spark.events(spark.read.parquet(str(place / "in")))
        changes = eventlog_spark.decide(found, CATALOG, unique=True).persisted().changes
        written = eventlog_spark.change_tables(changes, CATALOG, tables).persisted()
        assert rows_of_frames(written.tables()) == rows_in(place / "here")
        notes = parquet.read_table(place / "here" / "outcomes.parquet").to_pylist()
        assert {row.note for row in written.notes.collect()} == {
            row["note"] for row in notes if row["reason"] in ("refused", "altered")
        }
        if not changes.isEmpty():
            told = eventlog_spark.messages(changes, CATALOG, form, after=AFTER)
            expected, refused = published(changes, form, AFTER)
            ordered = told.frame.orderBy("position", told.frame["value"].isNull()).toArrow().to_pylist()
            assert [(row["topic"], row["key"], row["value"]) for row in ordered] == expected
            assert {row.note for row in told.notes.collect()} == refused


@pytest.mark.in_turn
def test_policies_send_rows_elsewhere_and_numbers_go_on(spark: SparkSession) -> None:
    rows: list[Row] = [
        (number, "N", 1, TIME, "app", "usr", f"idu={number}", "fname", None, "x") for number in range(1, 4)
    ]
    found = eventlog_spark.events(spark.createDataFrame(rows, TYPES))
    policies = (steps.Route(to="people"),)
    decided = eventlog_spark.decide(found, CATALOG, policies=policies, unique=True)
    assert decided.catalog is not None
    written = eventlog_spark.change_tables(decided.changes, decided.catalog, after=AFTER)
    assert written.last() == "2026010100000000" + "0" * 17 + "44"
    assert all(frame.isEmpty() for frame in written.tables().values())
    assert str(rows_of_frames(written.tables("people"))["people__ct"][0]["header__change_seq"]) > AFTER
    told = eventlog_spark.messages(decided.changes, decided.catalog, MESSAGES[0], after=AFTER)
    assert {row.topic for row in told.frame.collect()} == {"people"}
    assert [topic for topic, _, _ in told.metadata(AFTER)] == ["meta"] * len(CATALOG.tables)
    assert {row.route for row in eventlog_spark.documents(decided.changes, decided.catalog).collect()} == {"people"}


def test_a_registry_is_nobody_here(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="no schema registry that gives numbers"):
        eventlog_spark.messages(spark.range(1), CATALOG, MessageSettings(encoding="avro", mode="registry"))


@pytest.mark.in_turn
def test_frames_say_who_is_behind_a_change_where_it_is_asked_for(spark: SparkSession) -> None:
    kinds = f"{TYPES}, eventlog_context string"
    place = (TIME, "app", "usr", "idu=1", "fname")
    rows = [
        (1, "N", 2, *place, "a", "b", "alice"),
        (2, "N", 2, *place, "b", "c", "bob"),
        (3, "N", 2, *place, "c", "d", None),
    ]
    found = eventlog_spark.events(spark.createDataFrame(rows, kinds))
    changes = eventlog_spark.decide(found, CATALOG, unique=True, who=True).persisted().changes
    said = [("app", "alice"), ("app", "bob"), ("app", None)]
    assert [tuple(row.who) for row in changes.orderBy("position").collect()] == said
    tables = eventlog_spark.change_tables(changes, CATALOG, who=True).tables()
    told = rows_of_frames(tables)["usr__ct"]
    assert [(row["header__user"], row["header__context"]) for row in told if row["header__change_oper"] != "B"] == said
    frame = eventlog_spark.messages(changes, CATALOG, who=True).frame.orderBy("position")
    headers = [{one.key: bytes(one.value) for one in row.headers} for row in frame.collect()]
    assert [one.get("eventlog.context") for one in headers] == [b"alice", b"bob", None]
    bodies = [row.body for row in eventlog_spark.documents(changes, CATALOG, who=True).orderBy("position").collect()]
    assert ["alice" in body for body in bodies] == [True, False, False]
    # Nobody says it unasked, and changes of two people are none of two any more.
    silent = eventlog_spark.decide(found, CATALOG, unique=True).changes
    assert {row.who for row in silent.collect()} == {None}
    assert "headers" not in eventlog_spark.messages(silent, CATALOG).frame.columns
