"""Change tables in files: what a reader finds, repeats, values that a file cannot hold, partitions, descriptions."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import DataError, SinkError
from eventlog.core.model import Op, Reason
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.change_tables.rows import ChangeColumn, RowBlock, RowsDocument
from eventlog.sinks.change_files.arrow import misfits, parquet_bytes
from eventlog.sinks.change_files.dfm import description
from eventlog.sinks.change_files.sink import ChangeTableFiles
from tests.support.changerows import AT, CSV, JSON, documents, told
from tests.support.sinks import opened

pq = pytest.importorskip("pyarrow.parquet")
ADD = told(1, Op.ADD, 1, fname="Jack", pay="1.50", photo="qqo=", since="2026-01-02 03:04:05.5")
UPDATE = told(2, Op.MODIFY, 1, fname=("Jack", "\\N"))
GROUP = told(3, Op.ADD, 1, "grp", name="")


def parquet(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        row for path in sorted(folder.rglob("*.parquet")) for row in pq.ParquetFile(path).read().to_pylist()
    ]
    return found


def test_parquet_holds_the_rows_with_their_types(tmp_path: Path) -> None:
    assert list(opened(ChangeTableFiles(tmp_path)).commit("", documents(ADD, UPDATE, GROUP))) == []
    added, before, after = parquet(tmp_path / "usr__ct")
    assert added["header__change_mask"] == b"\x80\x0f"
    assert (added["pay"], added["photo"], added["header__timestamp"]) == (
        Decimal("1.50"),
        b"\xaa\xaa",
        AT.replace(tzinfo=dt.UTC),
    )
    assert (before["header__change_oper"], before["fname"], after["fname"]) == ("B", "Jack", "\\N")
    assert [row["name"] for row in parquet(tmp_path / "grp__ct")] == [""]


def test_csv_keeps_null_and_texts_apart(tmp_path: Path) -> None:
    opened(ChangeTableFiles(tmp_path, CSV)).commit("", documents(ADD, UPDATE, GROUP))
    [path] = (tmp_path / "usr__ct").glob("*.csv")
    head, *_, last = path.read_text().splitlines()
    assert head.startswith("header__change_seq,header__change_oper,header__change_mask")
    assert last.split(",")[1:3] == ["U", "0100"]
    assert last.endswith(',1,"\\N",\\N,\\N,\\N')
    [row] = csv.DictReader(io.StringIO(next((tmp_path / "grp__ct").glob("*.csv")).read_text()))
    assert (row["name"], row["idg"], row["header__timestamp"]) == ("", "1", "2024-05-06 07:08:09.120000")


UNKNOWN = ("sourceEndpoint", "sourceEndpointType", "sourceEndpointUser", "replicationServer")
BIG = told(4, Op.ADD, 2**70)


def test_a_value_that_a_file_cannot_hold_is_set_aside(tmp_path: Path) -> None:
    made = documents(ADD, BIG, told(5, Op.ADD, 3, pay="123456789012"))
    outcomes = opened(ChangeTableFiles(tmp_path)).commit("a", made)
    assert [(one.position, one.reason) for one in outcomes] == [((4,), Reason.REFUSED), ((5,), Reason.REFUSED)]
    assert "usr__ct: column idu" in str(outcomes[0].note)
    assert [row["idu"] for row in parquet(tmp_path)] == [1]
    assert opened(ChangeTableFiles(tmp_path)).commit("a", made) == outcomes
    assert list(opened(ChangeTableFiles(tmp_path)).resolve("a").answers) == list(outcomes)
    assert opened(ChangeTableFiles(tmp_path)).resolve("b").answers == ()
    assert [row["idu"] for row in parquet(tmp_path)] == [1]


def test_a_block_of_refused_rows_alone_makes_no_file(tmp_path: Path) -> None:
    opened(ChangeTableFiles(tmp_path)).commit("", documents(BIG))
    assert parquet(tmp_path) == []


def test_by_option_it_stops(tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="usr__ct does not take a row"):
        opened(ChangeTableFiles(tmp_path, stop=True)).commit("", documents(ADD, BIG))
    assert opened(ChangeTableFiles(tmp_path)).last() == ""


def test_partitions_are_folders_and_are_listed_when_they_are_over(tmp_path: Path) -> None:
    made = documents(ADD, GROUP, told(4, Op.ADD, 2, minutes=60), partition_every=60, size=1)
    opened(ChangeTableFiles(tmp_path)).commit("", made)
    folders = sorted(path.name for path in (tmp_path / "usr__ct").iterdir())
    assert folders == ["20240506T070000_20240506T080000", "20240506T080000_20240506T090000"]
    lines = [json.loads(line) for line in (tmp_path / "attrep_cdc_partitions.jsonl").read_text().splitlines()]
    assert sorted(line["table_name"] for line in lines) == ["grp", "usr"]
    assert {line["partition_end_time"] for line in lines} == {"2024-05-06 08:00:00.000"}


def test_a_new_column_makes_a_new_version(tmp_path: Path) -> None:
    first = documents(ADD)
    opened(ChangeTableFiles(tmp_path)).commit("", first)
    wide = Catalog([Table(name="usr", columns=(Column(name="idu", type="integer", key=1), Column(name="nick")))])
    opened(ChangeTableFiles(tmp_path)).commit(
        "", documents(told(2, Op.ADD, 2, nick="x"), catalog=wide, after=first[-1].id)
    )
    versions = [json.loads(path.read_bytes())["dataInfo"]["tableVersion"] for path in sorted(tmp_path.rglob("*.dfm"))]
    assert versions == [1, 2]


def test_a_schema_stands_before_the_name_and_leads_nowhere(tmp_path: Path) -> None:
    table = Table(name="../t", schema="hr", columns=(Column(name="a", type="integer", key=1),))
    change = told(1, Op.DELETE, 1)
    from msgspec.structs import replace

    from eventlog.core.model import RowId

    made = documents(replace(change, row=RowId("hr", "../t", "a=1")), catalog=Catalog([table]), headers=())
    opened(ChangeTableFiles(tmp_path / "in")).commit("", made)
    assert [path.parent.name for path in (tmp_path / "in").rglob("*.parquet")] == ["hr...%2ft__ct"]
    assert isinstance(made[0], RowsDocument)


def test_a_position_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "_position.json").write_text("{")
    with pytest.raises(DataError, match=r"_position\.json cannot be read"):
        opened(ChangeTableFiles(tmp_path))


def test_a_time_of_day_is_text_that_every_reader_of_parquet_takes() -> None:
    columns = [ChangeColumn(name="id", type="integer", key=1), ChangeColumn(name="at", type="time(3)")]
    cells = ([1, 2, 3], [dt.time(7, 8, 9, 120_000), None, dt.time(0)])
    [ids, times] = pq.read_table(io.BytesIO(parquet_bytes(columns, cells))).columns
    assert (ids.to_pylist(), times.to_pylist()) == ([1, 2, 3], ["07:08:09.120000", None, "00:00:00.000000"])
    assert misfits(columns, [(1, dt.time(7)), (2, None)]) == {}


@pytest.fixture
def in_another_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock does not show UTC."""
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_another_zone")
@pytest.mark.parametrize("schema", [None, "shop"])
def test_a_description_as_a_whole(schema: str | None) -> None:
    table = Table(name="t", schema=schema, columns=(Column(name="id", type="integer", key=1),))
    columns = [
        ChangeColumn(name="id", type="integer", key=1),
        ChangeColumn(name="pay", type="numeric(10, 2)"),
        ChangeColumn(name="whole", type="numeric(10)"),
        ChangeColumn(name="fname", type="varchar(40)"),
        ChangeColumn(name="photo", type="varbinary(8)"),
        ChangeColumn(name="since", type="timestamp(3)"),
    ]
    block = RowBlock(
        table=table, target="t__ct", columns=tuple(columns), cells=tuple([[] for _ in columns]), positions=[()] * 7
    )
    at = AT.replace(tzinfo=dt.UTC)
    said = json.loads(description(JSON, "n", "here", block, task="copy", started=at, ended=at))
    facts = [
        (one["ordinal"], one["name"], one["type"], one["length"], one["precision"], one["scale"], one["primaryKeyPos"])
        for one in said["dataInfo"].pop("columns")
    ]
    assert facts == [
        (1, "id", "INT4", 10, 0, 0, 1),
        (2, "pay", "NUMERIC", 0, 10, 2, 0),
        (3, "whole", "NUMERIC", 0, 10, 0, 0),
        (4, "fname", "STRING", 40, 0, 0, 0),
        (5, "photo", "BYTES", 8, 0, 0, 0),
        (6, "since", "DATETIME", 0, 0, 0, 0),
    ]
    assert said == {
        "dfmVersion": "1.1",
        "taskInfo": {"name": "copy", "operation": "dataProduced", **dict.fromkeys(UNKNOWN, "")},
        "fileInfo": {
            "name": "n",
            "extension": "json",
            "location": "here",
            "startWriteTimestamp": "2024-05-06T07:08:09.120",
            "endWriteTimestamp": "2024-05-06T07:08:09.120",
            "firstTransactionTimestamp": "",
            "lastTransactionTimestamp": "",
            "content": "changes",
            "recordCount": 7,
            "errorCount": 0,
        },
        "formatInfo": {"format": "json", "options": {}},
        "dataInfo": {
            "sourceSchema": schema or "",
            "sourceTable": "t",
            "targetSchema": schema or "",
            "targetTable": "t__ct",
            "tableVersion": 1,
        },
    }


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SinkError, match="cannot be written"):
        opened(ChangeTableFiles(tmp_path / "file"))
