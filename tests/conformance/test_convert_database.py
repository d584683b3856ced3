"""Converting a log where it lies, on each database: the daemon's bytes, rows chosen by status, marks when asked for."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyarrow import parquet
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, SourceConfig
from eventlog.convert import build, command
from eventlog.convert.build import config_of, is_worth_spark
from eventlog.convert.commit import UNMARKED
from eventlog.convert.local import convert
from eventlog.convert.marks import can_be_marked, marking
from eventlog.convert.orders import order_of
from eventlog.convert.settings import Conversion, DatabaseRows, FilesInput, LogInput, SnapshotRows
from eventlog.core.errors import OK, InstallError, UsageError
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.daemon.publisher import Publisher
from eventlog.policies.steps import Lookup
from eventlog.purge.archive import Archive
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from eventlog.sql.reflect import reflect
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.event_logs import LogTable, installed, make_log
from tests.support.converting import bare, elements_of, files_of, outcomes_of
from tests.support.logged import run


@pytest.fixture
def log(engine: Engine) -> LogTable:
    """Make a log on the table usr, with rows of every sort in no order."""
    binary = {"postgresql": "BYTEA", "mysql": "VARBINARY(30)"}.get(dialect_of(engine).name, "BLOB")
    found = installed(engine)
    found.run(
        "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64), age INTEGER, born DATE,"
        f" pay NUMERIC(10, 2), photo {binary})"
    )
    found.run("CREATE TABLE usr_phone (idu INTEGER, phoneno VARCHAR(32), FOREIGN KEY (idu) REFERENCES usr (idu))")
    photo = {"photo": b"\xaa\xaa"}
    found.run(
        "INSERT INTO usr VALUES (1, 'Jack', 7, '2019-05-01', 10.50, :photo), (2, NULL, NULL, NULL, NULL, NULL)", photo
    )
    found.run("INSERT INTO usr_phone VALUES (1, '22'), (1, '11'), (2, '33')")
    found.write(9, "idu=1", event_type=6, column_name=None, new_value=None)
    found.write(3, "idu=2", event_type=8, column_name="usr_phone.phoneno", new_value=None)
    found.write(4, "idu=3", event_type=5, column_name=None, new_value=None)
    found.write(5, "idu=3", new_value="é<&>", perpetrator="idm")
    found.write(6, "idu=2", event_type=2, old_value="a", new_value="b")
    found.write(7, "nonsense")
    found.write(8, "idu=4", status="S")
    found.write(10, "idu=5", event_type=4, column_name=None, new_value=None, status="X")
    return found


def url(log: LogTable) -> str:
    return log.engine.url.render_as_string(hide_password=False)


def catalog_of(log: LogTable) -> Catalog:
    return reflect(log.engine, ["usr"])


def conversion(log: LogTable, out: Path, statuses: str = "N") -> Conversion:
    return Conversion(
        input=LogInput(url=url(log), statuses=statuses),
        destination=out,
        catalog=catalog_of(log),
        read_back=DatabaseRows(url=url(log)),
        options=Options(user="IDM"),
    )


def told_by_the_daemon(log: LogTable, folder: Path, *steps: Lookup) -> str:
    """Publish the log, and return the elements written."""
    config = Config(source=SourceConfig(url=url(log), user="IDM"), output=(FilesOutput(path=str(folder), steps=steps),))
    with Publisher(config) as publisher:
        publisher.run_once()
    return "".join(bare(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.xml")))


def test_a_log_gives_what_the_daemon_publishes(log: LogTable, tmp_path: Path) -> None:
    convert(conversion(log, tmp_path / "out"), jobs=1)
    assert elements_of(tmp_path / "out") == told_by_the_daemon(log, tmp_path / "daemon")
    finished = {row["position"]: (row["status"], row["reason"], row["note"]) for row in outcomes_of(tmp_path / "out")}
    assert {number: status for number, (status, _, _) in finished.items()} == {
        number: letter for number, letter in log.statuses().items() if number not in (8, 10)
    }
    noted = {number: row[:3] for number, row in log.outcomes().items()}
    assert {number: row for number, row in finished.items() if row[1] != "published"} == noted


def test_nothing_is_marked_unless_asked_for(log: LogTable, tmp_path: Path) -> None:
    before = log.statuses()
    made = conversion(log, tmp_path / "out")
    convert(made, jobs=1)
    assert (log.statuses(), log.outcomes()) == (before, {})
    log.run("UPDATE event_log SET status = 'X' WHERE record_id = 6")
    with marking(made) as place:
        assert place.finish().rows == 5
    assert log.statuses() == {3: "S", 4: "W", 5: "S", 6: "X", 7: "E", 8: "S", 9: "S", 10: "X"}
    assert {number: row[:2] for number, row in log.outcomes().items()} == {
        4: ("W", "vanished"),
        5: ("S", "loopback"),
        7: ("E", "invalid"),
    }


def test_rows_are_chosen_by_status_and_held_ones_wait(log: LogTable, tmp_path: Path) -> None:
    log.run("INSERT INTO event_log_hold (record_id) VALUES (6), (8)")
    convert(conversion(log, tmp_path / "n"), jobs=1)
    convert(conversion(log, tmp_path / "sx", statuses="SX"), jobs=1)
    assert [row["position"] for row in outcomes_of(tmp_path / "n")] == [3, 4, 5, 7, 9]
    assert [row["position"] for row in outcomes_of(tmp_path / "sx")] == [8, 10]


def test_a_log_without_companions_is_converted_and_not_marked(engine: Engine, tmp_path: Path) -> None:
    make_log(engine)
    log = LogTable(engine)
    log.write(1)
    source = LogInput(url=url(log))
    convert(Conversion(input=source, destination=tmp_path / "out"), jobs=1)
    assert [row["status"] for row in outcomes_of(tmp_path / "out")] == ["S"]
    with pytest.raises(InstallError, match="event_log_setup"):
        can_be_marked(source)
    with pytest.raises(UsageError, match="no other --status than N"):
        can_be_marked(replace(source, statuses="E"))


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_snapshot_answers_as_the_database_does(log: LogTable, tmp_path: Path, suffix: str) -> None:
    (tmp_path / "snapshot").mkdir()
    for table in ("usr", "usr_phone"):
        name = table if catalog_of(log).case_sensitive else table.upper()
        write_table(log.engine, table, tmp_path / "snapshot" / f"{name}.{suffix}")
    made = conversion(log, tmp_path / "database")
    convert(made, jobs=1)
    snapshot = SnapshotRows(folder=tmp_path / "snapshot")
    convert(replace(made, destination=tmp_path / "files", read_back=snapshot), jobs=2)
    assert "qqo=" in elements_of(tmp_path / "files")
    for name in ("files", "database"):
        (tmp_path / name / UNMARKED).unlink()  # each says its own order
    assert files_of(tmp_path / "files") == files_of(tmp_path / "database")


def test_a_table_that_the_snapshot_lacks_has_not_vanished(log: LogTable, tmp_path: Path) -> None:
    (tmp_path / "snapshot").mkdir()
    log.run("CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, title VARCHAR(9))")
    log.write(11, "idg=1", table_name="grp", event_type=6, column_name=None)
    write_table(log.engine, "usr", tmp_path / "snapshot" / "usr.parquet")
    made = replace(
        conversion(log, tmp_path / "out"),
        catalog=reflect(log.engine, ["usr", "grp"]),
        read_back=SnapshotRows(folder=tmp_path / "snapshot"),
    )
    convert(made, jobs=1)
    ended = {row["position"]: (row["status"], row["note"]) for row in outcomes_of(tmp_path / "out")}
    assert (ended[9], ended[4][0]) == (("S", None), "W")
    assert ended[11] == (
        "E",
        "its values must be read back from the table, and there is no database or snapshot to read from.",
    )
    assert ended[3] == ("E", "the row that was read back has no column usr_phone.phoneno.")


def test_archives_of_processed_rows_are_input(log: LogTable, tmp_path: Path) -> None:
    columns = "record_id, status, event_type, event_time, perpetrator, table_name, table_key, column_name, old_value, new_value"
    file = Archive(tmp_path / "archive", "event_log").file()
    file.write(
        [
            (*row[:3], str(row[3]), *row[4:], None, "a note", None, None)
            for row in log.ask(f"SELECT {columns} FROM event_log")
        ]
    )
    file.finish()
    made = conversion(log, tmp_path / "all", statuses="NSX")
    convert(made, jobs=1)
    archived = replace(made, input=FilesInput(places=(str(tmp_path / "archive"),)), destination=tmp_path / "archived")
    convert(archived, jobs=1)
    assert len(outcomes_of(tmp_path / "archived")) == 8
    assert files_of(tmp_path / "archived") == files_of(tmp_path / "all")


def write_table(engine: Engine, table: str, path: Path) -> None:
    """Write a table as a file of a snapshot."""
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        import base64
        import json

        def plain(value: object) -> str:
            return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)

        path.write_text("".join(json.dumps(row, default=plain) + "\n" for row in rows))


@pytest.mark.parametrize("statuses, worth", [(None, False), ("X", True), ("NX", True), ("E", False)])
def test_a_database_is_for_spark_from_so_many_rows_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, statuses: str | None, worth: bool
) -> None:
    log = installed(engine)
    log.write_all(range(1, 6))
    log.run("UPDATE event_log SET status = 'X' WHERE record_id > 1")
    monkeypatch.setattr(build, "SPARK_ROWS", 4)
    said = [engine.url.render_as_string(hide_password=False), "--out", "documents"]
    said += [] if statuses is None else ["--status", statuses]
    order = order_of("database", command.database.make_context("database", said).params)
    assert is_worth_spark(order, config_of(order)) is worth


@pytest.mark.parametrize("most, worth", [(1_000, False), (10, True)])
def test_files_are_for_spark_from_so_many_bytes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, worth: bool
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"record_id": 1, "table_name": "usr"}\n')
    monkeypatch.setattr(build, "SPARK_BYTES", most)
    order = order_of("files", command.files.make_context("files", [str(tmp_path), "--out", "documents"]).params)
    assert is_worth_spark(order, config_of(order)) is worth


@pytest.mark.parametrize("style", list(Style))
def test_a_text_that_is_not_utf_8_ends_its_row_and_no_other(sqlite: Engine, tmp_path: Path, style: Style) -> None:
    install(sqlite)
    run(sqlite, "CREATE TABLE t (k TEXT NOT NULL PRIMARY KEY, v TEXT)")
    track(sqlite, ["t"], TriggerOptions(style=style))
    run(
        sqlite,
        "INSERT INTO t VALUES ('good', 'größer')",
        "INSERT INTO t VALUES ('bad', CAST(x'ff41' AS TEXT))",
        "INSERT INTO t VALUES (CAST(x'fe41' AS TEXT), 'y')",
        "INSERT INTO t VALUES ('last', 'z')",
    )
    assert exit_code(["convert", "database", str(sqlite.url), "--out", str(tmp_path / "out")]) == OK
    outcomes = {one["position"]: one for one in outcomes_of(tmp_path / "out")}
    # What is read back is left out, as the publisher does.
    read_back = style in (Style.ROW_BACK, Style.FIELD_BACK)
    assert [outcomes[number]["status"] for number in (1, 2, 3, 4)] == ["S", "W" if read_back else "E", "E", "S"]
    assert "table_key is not UTF-8 text" in outcomes[3]["note"]
    published = elements_of(tmp_path / "out")
    assert "größer" in published
    assert "k=last," in published
