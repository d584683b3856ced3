"""Bulk conversion to change tables: the rows that the daemon writes, numbered alike, however it is cut and by whoever."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from eventlog.convert.commit import Summary
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, SnapshotRows, TableFiles, Target
from eventlog.core.model import REFRESH, RowId
from eventlog.core.rules import decide
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument, by_column
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.arrow import arrow_columns
from eventlog.sinks.change_files.row_files import csv_lines
from eventlog.sinks.change_files.settings import RowFileSettings
from tests.support.changerows import CSV
from tests.support.converting import (
    converted,
    files_of,
    log_row,
    outcomes_of,
    row_of,
    write_lines,
    write_parquet,
    write_snapshot,
)
from tests.support.daily import daily
from tests.support.examples import examples
from tests.support.strategies import CATALOG, PHONE, History, histories

PARTITIONED = ChangeTableSettings(partition_every=60)
SHORT = ChangeTableSettings(headers=("change_oper", "timestamp"), prefix="", before_image=False)
NARROW = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(64)"),
        Column(name="age", type="integer"),
        Column(name="pay", type="numeric(5,2)"),
    ),
)

pytestmark = pytest.mark.usefixtures("small_steps")


def of_the_daemon(history: History, form: ChangeTableSettings) -> list[RowsDocument]:
    """Write all changes at once in the daemon's format."""
    changes = decide(history.events, dict(history.table), catalog=CATALOG).changes
    return [one for one in encode(ChangeTableFormat(settings=form), changes, CATALOG) if isinstance(one, RowsDocument)]


def rows_of_files(out: Path) -> list[dict[str, Any]]:
    """Read the rows in the files of each folder, one file after the other."""
    return [row for file in sorted(out.rglob("part-*.parquet")) for row in parquet.read_table(file).to_pylist()]


@daily
@given(histories(), st.integers(1, 5), st.sampled_from([ChangeTableSettings(), PARTITIONED, SHORT]), st.integers(1, 2))
@examples(12)
def test_histories_give_the_daemons_rows(
    history: History, part_events: int, form: ChangeTableSettings, jobs: int
) -> None:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        source = write_parquet(place / "log.parquet", [row_of(event) for event in history.events])
        rows = write_snapshot(place / "snapshot", history.table)
        same: dict[str, Any] = {
            "catalog": CATALOG,
            "part_events": part_events,
            "read_back": rows,
            "jobs": jobs if part_events == 2 else 1,
        }
        converted(source, place / "rows", **same, target=TableFiles(settings=form))
        converted(source, place / "texts", **same, target=TableFiles(settings=form, files=CSV))
        blocks = [block for document in of_the_daemon(history, form) for block in document.blocks]
        assert rows_of_files(place / "rows") == [
            row
            for block in blocks
            for row in arrow_columns(block.columns, by_column(block.rows, len(block.columns))).to_pylist()
        ]
        assert b"".join(
            line + b"\n"
            for file in sorted((place / "texts").rglob("part-*.csv"))
            for line in file.read_bytes().splitlines()[1:]
        ) == b"".join(csv_lines(block.columns, block.cells, CSV) for block in blocks)


@pytest.mark.parametrize("jobs", [1, 2])
def test_values_that_a_column_cannot_hold_end_as_errors_and_the_rest_goes_on(tmp_path: Path, jobs: int) -> None:
    bad = {"age": str(2**63), "pay": "123456.78"}
    rows = [
        log_row(2 * n, table_key=f"idu={n}", column_name=name, new_value=bad[name]) for n, name in enumerate(bad, 1)
    ]
    rows += [log_row(2 * n + 1, table_key=f"idu={n + 9}", column_name="age", new_value="7") for n in range(4)]
    source = write_lines(tmp_path / "log.jsonl", rows)
    strict = TableFiles(settings=ChangeTableSettings(on_value="refuse-object"))
    done = converted(source, tmp_path / "out", catalog=Catalog([NARROW]), target=strict, jobs=jobs)
    assert (done.statuses, done.changes) == ({"E": 2, "S": 4}, 4)
    found = {one["position"]: one for one in outcomes_of(tmp_path / "out")}
    for number, name in enumerate(bad, 1):
        one = found[2 * number]
        assert (one["status"], one["reason"]) == ("E", "refused")
        assert name in one["note"]
    assert [(row["idu"], row["age"]) for row in rows_of_files(tmp_path / "out")] == [(n + 9, 7) for n in range(4)]
    numbers = [row["header__change_seq"][16:] for row in rows_of_files(tmp_path / "out")]
    assert numbers == [f"{number:019d}" for number in range(1, 5)]


@pytest.mark.parametrize("name", ["/etc/passwd", "..", "../..", "a/b", "_temporary-eventlog", "."])
def test_odd_names_of_tables_stay_in_the_destination(tmp_path: Path, name: str) -> None:
    catalog = Catalog([Table(name=name, columns=NARROW.columns), Table(name=name, schema="..", columns=NARROW.columns)])
    rows = [log_row(1, table_name=name), log_row(2, table_name=f"...{name}")]
    source = write_lines(tmp_path / "log.jsonl", rows)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    done = converted(source, tmp_path / "out", catalog=catalog, target=TableFiles())
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert done.changes >= 1
    assert {path.relative_to(tmp_path).parts[0] for path in made} == {"out"}
    assert len([path for path in made if path.suffix == ".parquet" and path.parent.name.endswith("__ct")]) >= 1


def test_tables_whose_folders_are_called_alike_do_not_overwrite_each_other(tmp_path: Path) -> None:
    columns = NARROW.columns
    catalog = Catalog([Table(schema="a.b", name="c", columns=columns), Table(schema="a", name="b.c", columns=columns)])
    rows = [log_row(1, table_name="a.b.c"), log_row(2, table_name="b.c"), log_row(3, table_name="c")]
    source = write_lines(tmp_path / "log.jsonl", rows)
    done = converted(source, tmp_path / "out", catalog=catalog, target=TableFiles(), part_events=10)
    assert len(rows_of_files(tmp_path / "out")) == done.changes > 1
    assert {str(file.parent.name) for file in (tmp_path / "out").rglob("*.parquet") if "part" in file.name} == {
        "a.b.c__ct"
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_files_have_descriptions_and_a_full_load_has_files_of_its_own(tmp_path: Path, jobs: int) -> None:
    loaded = {"event_type": 5, "column_name": None, "new_value": None, "perpetrator": REFRESH}
    rows = [log_row(n, table_key=f"idu={n}", **(loaded if n % 2 else {})) for n in range(1, 8)]
    source = write_lines(tmp_path / "log.jsonl", rows)
    write_lines(tmp_path / "usr.jsonl", [{"idu": n, "fname": "Jack", "age": None, "pay": None} for n in range(1, 8)])
    read_back = SnapshotRows(folder=tmp_path)
    target = TableFiles(files=RowFileSettings(preset="qlik").choose_files("csv"), task="copy")
    told: dict[str, Any] = {"target": target, "part_events": 4, "jobs": jobs, "read_back": read_back}
    converted(source, tmp_path / "out", catalog=Catalog([NARROW]), **told)
    found = {name: content for name, content in files_of(tmp_path / "out").items() if "/" in name}
    stems = ("usr/LOAD00000001", "usr/LOAD00000002", "usr__ct/part-00000", "usr__ct/part-00001")
    assert set(found) == {f"{stem}{ending}" for stem in stems for ending in (".csv.gz", ".dfm")}
    loads = [gzip.decompress(found[f"usr/LOAD0000000{n}.csv.gz"]).decode().splitlines() for n in (1, 2)]
    assert loads == [["1,Jack,,", "3,Jack,,"], ["5,Jack,,", "7,Jack,,"]]
    changed = gzip.decompress(found["usr__ct/part-00001.csv.gz"]).decode().splitlines()
    assert [line.split(",")[-4:] for line in changed] == [["6", "Jack", "", ""]]
    said = json.loads((tmp_path / "out/usr__ct/part-00000.dfm").read_bytes())
    about = said["fileInfo"]
    assert (said["taskInfo"]["name"], about["recordCount"], about["location"]) == ("copy", 2, "usr__ct")
    assert about["startWriteTimestamp"] <= about["endWriteTimestamp"]
    assert about["firstTransactionTimestamp"] == "2026-01-01T00:00:00.000"


@pytest.mark.parametrize(
    "form", [TableFiles(files=CSV), MessageFiles(settings=MessageSettings(mode="metadata", metadata_topic="meta"))]
)
def test_conversions_one_after_the_other_number_as_one(form: Target, tmp_path: Path) -> None:
    """Also where the second has earlier times, for numbers never run backwards."""
    rows = [log_row(n, table_key=f"idu={n}", event_time=f"2026-01-0{9 - n}") for n in range(1, 8)]
    sources = {"all": rows, "first": rows[:3], "second": rows[3:]}
    for name, some in sources.items():
        (tmp_path / name).mkdir()
        write_lines(tmp_path / name / "rows.jsonl", some)

    def converted_after(name: str, after: str = "") -> Summary:
        source, out = FilesInput(places=(str(tmp_path / name),)), tmp_path / f"out-{name}"
        told = Conversion(input=source, destination=out, catalog=CATALOG, format=form, part_events=2, after=after)
        return convert(told, jobs=1)

    whole, first = converted_after("all"), converted_after("first")
    second = converted_after("second", first.change_seq)
    assert int(first.change_seq[16:]) == 3
    assert second.change_seq == whole.change_seq
    both = _numbered(tmp_path / "out-first") + _numbered(tmp_path / "out-second")
    assert both == _numbered(tmp_path / "out-all")
    assert all(any(f"{number:019d}" in line for line in both) for number in range(1, 8))


def _numbered(folder: Path) -> list[str]:
    """Read the lines of changes, in the order of their parts."""
    parts = sorted(path for path in folder.rglob("part-*") if path.suffix in (".csv", ".jsonl"))
    lines = [line for part in parts if part.parent.name != "meta" for line in part.read_text().splitlines()]
    return [line for line in lines if "header__" not in line]


HELD = {RowId(None, "usr", f"idu={key}"): {"fname": "Jack", "lname": None, PHONE: ()} for key in (1, 2)}


def written(folder: Path, encoding: Literal["json", "avro"]) -> list[dict[str, Any]]:
    rows = [
        log_row(1, event_type=5, column_name=None, new_value=None, perpetrator=REFRESH),
        log_row(2, column_name="lname", new_value="Frost", table_key="idu=3"),
        log_row(3, event_type=5, column_name=None, new_value=None, perpetrator=REFRESH, table_key="idu=2"),
    ]
    source, snapshot = write_parquet(folder / "log.parquet", rows), write_snapshot(folder / "snapshot", HELD)
    form = MessageFiles(settings=MessageSettings(topic="{table}", encoding=encoding, mode="bare"))
    converted(source, folder / "out", catalog=CATALOG, read_back=snapshot, target=form)
    [part] = folder.glob("out/usr/part-*")
    if encoding == "json":
        return [json.loads(line) for line in part.read_bytes().splitlines()]
    with part.open("rb") as file:
        return [record for record in fastavro.reader(file) if isinstance(record, dict)]


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_rows_of_a_full_load_have_no_number_and_leave_a_gap(tmp_path: Path, encoding: Literal["json", "avro"]) -> None:
    told = [(one["headers"]["operation"], one["headers"]["changeSequence"][16:]) for one in written(tmp_path, encoding)]
    assert told == [("REFRESH", ""), ("INSERT", f"{2:019d}"), ("REFRESH", "")]
