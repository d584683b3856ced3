"""Whole folders of change tables are read by a Spark with nothing but its defaults, and merged as our pages say."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.core.model import Change, Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sinks.change_files.settings import PARQUET
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.outputs import FilesOutput
from eventlog.tracked.options import Style
from tests.support.changerows import AT, JSON, documents
from tests.support.random_work import KEYS, RandomWork, keyed, state, typed
from tests.support.sinks import opened
from tests.support.told import published, tracked_tables

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

TYPES = {
    "id": ("integer", None, "int"),
    "small": ("smallint", "7", "int"),
    "large": ("bigint", "8", "bigint"),
    "wide": ("bigint unsigned", str(2**64 - 1), "decimal(20,0)"),
    "pay": ("numeric(10,2)", "1.50", "decimal(10,2)"),
    "exact": ("numeric", "1.25", "string"),
    "ratio": ("real", "0.5", "float"),
    "share": ("double precision", "0.1", "double"),
    "ok": ("boolean", "t", "boolean"),
    "fname": ("varchar(64)", "Jack", "string"),
    "photo": ("bytea", "qqo=", "binary"),
    "born": ("date", "2024-05-06", "date"),
    "wakes": ("time", "07:08:09.12", "string"),
    "since": ("timestamp", "2024-05-06 07:08:09", "timestamp_ntz"),
    "seen": ("timestamptz", "2024-05-06 09:08:09+02", "timestamp"),
}
WIDE = Table(
    name="usr",
    columns=tuple(
        [Column(name=name, type=kind, key=1 if name == "id" else None) for name, (kind, _, _) in TYPES.items()]
    ),
)


def change(number: int, op: Op, key: int, name: str | None = None) -> Change:
    values = {column: value for column, (_, value, _) in TYPES.items() if value is not None}
    values |= {} if name is None else {"fname": name}
    edits = [Edit(column=column, old=values[column], new=values[column]) for column in values]
    if name is not None and op is Op.MODIFY:
        edits = [replace(edit, old="before") if edit.column == "fname" else edit for edit in edits]
    at = AT + dt.timedelta(seconds=number)
    return Change(row=RowId(None, "usr", f"id={key}"), op=op, edits=tuple(edits), positions=((number,),), time=at)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Change tables in several files: 1 is inserted and changed, 2 inserted and deleted, 3 and 4 only inserted."""
    sink = opened(ChangeTableFiles(tmp_path / "lake", PARQUET))
    history = [change(1, Op.ADD, 1), change(2, Op.ADD, 2), change(3, Op.ADD, 3), change(4, Op.MODIFY, 1, "Joe")]
    history += [change(5, Op.DELETE, 2), change(6, Op.ADD, 4, "Ada")]
    for each in history:
        sink.commit("", documents(each, catalog=Catalog([WIDE]), after=sink.last()))
    return tmp_path / "lake"


def test_a_folder_with_every_type_is_read_whole(spark: SparkSession, folder: Path) -> None:
    read = spark.read.parquet(str(folder / "usr__ct"))
    types = dict(read.dtypes)
    assert {name: types[name] for name in TYPES} == {name: kind for name, (_, _, kind) in TYPES.items()}
    assert types["header__timestamp"] == "timestamp"
    assert read.count() == 7  # a before image is a row
    one = read.where("header__change_oper = 'U'").first()
    assert one is not None
    assert (one.wakes, one.small, one.ratio, one.fname) == ("07:08:09.120000", 7, 0.5, "Joe")


@pytest.mark.in_turn
def test_a_merge_of_what_a_real_log_tells_gives_the_tables(
    spark: SparkSession, postgresql: Engine, tmp_path: Path
) -> None:
    """From triggers by a publisher to files, merged twice: after a first part of the work, and with what came later."""
    tracked_tables(postgresql, Style.IMAGE)
    work = RandomWork(postgresql, Random(20), truncates=True)
    output = FilesOutput(path=str(tmp_path), format="change-tables")
    merged: dict[str, list[Row]] = {table: [] for table in KEYS}
    seen = dict.fromkeys(KEYS, "")
    for _ in range(2):
        published(work, output, rounds=2, transactions=15)
        for table, key in KEYS.items():
            changes = spark.read.parquet(str(tmp_path / f"*{table}__ct"))
            own = changes.select([name for name in changes.columns if not name.startswith("header__")])
            new = changes.where(changes.header__change_seq > seen[table])
            seen[table] = max(row.header__change_seq for row in new.select("header__change_seq").collect())
            new.createOrReplaceTempView("changes")
            spark.createDataFrame(merged[table], own.schema).createOrReplaceTempView("target")
            same = " AND ".join(f"l.{name} = t.{name}" for name in key)
            found = spark.sql(f"""
                WITH latest AS (
                    SELECT * FROM (
                        SELECT c.*, ROW_NUMBER() OVER (PARTITION BY {", ".join(key)} ORDER BY header__change_seq DESC) AS nth
                        FROM changes c WHERE header__change_oper <> 'B'
                    ) WHERE nth = 1
                )
                SELECT t.* FROM target t LEFT ANTI JOIN latest l ON {same}
                UNION ALL SELECT {", ".join(own.columns)} FROM latest WHERE header__change_oper <> 'D'
            """)
            merged[table] = found.collect()
        with postgresql.connect() as connection:
            expected = state(connection)
        rows = [(table, typed(row.asDict())) for table in KEYS for row in merged[table]]
        assert {(table, keyed(table, row)): row for table, row in rows} == expected
        assert len(rows) == len(expected) > 2


def test_json_is_read_by_its_pattern(spark: SparkSession, tmp_path: Path) -> None:
    opened(ChangeTableFiles(tmp_path, JSON)).commit("", documents(change(1, Op.ADD, 1), catalog=Catalog([WIDE])))
    read = spark.read.json(str(tmp_path / "usr__ct" / "*.json")).first()
    assert read is not None
    assert (read.id, read.wide, read.header__change_oper) == (1, str(2**64 - 1), "I")
