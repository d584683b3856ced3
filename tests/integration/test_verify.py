"""`eventlog verify` on the whole way: triggers, publisher, change tables, mirrors and lakes; planted differences, load, and repair."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa
from deltalake import DeltaTable, write_deltalake
from pyiceberg.table import Table
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.config.settings import load
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.lake.plugin import IcebergOutput
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.verify import verifying
from eventlog.verify.repair import repair
from tests.integration.publishing import in_thread, url_of
from tests.support.compared import another, made_source, random_row, stored
from tests.support.lakes import LAKES, Lake, open_catalog
from tests.support.reflected import reflect_table
from tests.support.servers import databases

ROWS = 150
CONFIG = """
[source]
url = "{source}"
[publisher]
allow_loopback = true
[[output]]
name = "lake"
format = "change-tables"
sink = "database"
url = "{lake}"
[[output]]
name = "files"
format = "change-tables"
sink = "files"
path = "{folder}"
file_format = "{file_format}"
{more}
"""


class Circle:
    """A source with triggers, its publisher, and a database with change tables and mirrors."""

    def __init__(self, source: Engine, lake: Engine, folder: Path, capsys: Any, *, key: str, more: str = "") -> None:
        self.source, self.lake = source, lake
        self.dice = random.Random(42)
        self.key = key
        self.table = made_source(source, key)
        install(source)
        track(source, ["usr"], TriggerOptions(style=Style.ROW_BACK))
        self.file = folder / "eventlog.toml"
        places = {"source": url_of(source), "lake": url_of(lake), "folder": folder / "out"}
        self.file.write_text(CONFIG.format(**places, more=more, file_format="csv"))
        self._capsys = capsys

    def write(self, many: int, numbers: Sequence[int] = range(ROWS)) -> None:
        """Random inserts, updates and deletes; keys come again."""
        with self.source.begin() as connection:
            for _ in range(many):
                row = random_row(self.dice, self.key, self.dice.choice(numbers))
                mine = [column == row[column.name] for column in self.table.primary_key.columns]
                there = connection.execute(sa.select(sa.literal(1)).select_from(self.table).where(*mine)).first()
                if there is None:
                    connection.execute(self.table.insert(), [row])
                elif self.dice.random() < 0.2:
                    connection.execute(self.table.delete().where(*mine))
                else:
                    names = self.dice.sample([n for n in row if n not in self.table.primary_key.columns], 3)
                    connection.execute(self.table.update().where(*mine).values({n: row[n] for n in names}))

    def publish(self) -> None:
        code, out = self.command("run", "--until-empty")
        assert code == 0, out
        self.apply()

    def apply(self) -> None:
        assert exit_code(["apply", "--database", url_of(self.lake)]) == 0
        self._capsys.readouterr()

    def command(self, *arguments: str) -> tuple[int, str]:
        self._capsys.readouterr()
        code = exit_code([*arguments, "--config", str(self.file)])
        out = self._capsys.readouterr()
        assert "Traceback" not in out.err, out.err
        return code, out.out

    def verify(self, *arguments: str) -> tuple[int, dict[str, Any]]:
        code, out = self.command("verify", "--json", "--wait", "20", *arguments)
        assert code in (0, 1), out
        [told] = json.loads(out)["tables"]
        return code, told

    def plant(self, many: int) -> set[tuple[str, ...]]:
        """Puts differences into the mirror, and says which."""
        source = reflect_table(self.source, "usr")
        mirror = sa.Table("usr__mirror", sa.MetaData(), autoload_with=self.lake)
        keys = [column.name for column in self.table.primary_key.columns]
        put: set[tuple[str, ...]] = set()
        with self.source.connect() as connection:
            rows = [dict(row._mapping) for row in connection.execute(sa.select(self.table))]
        with self.lake.begin() as connection:
            for number, row in enumerate(self.dice.sample(rows, many)):
                held = stored(self.lake, source, row)
                mine = [mirror.c[name] == held[name] for name in keys]
                if number % 4 == 0:
                    connection.execute(mirror.delete().where(*mine))
                    put.add(("missing",))
                elif number % 4 == 1 and isinstance(row["id"], str):
                    connection.execute(mirror.insert(), [stored(self.lake, source, row | {"id": f"{row['id']}!"})])
                    put.add(("extra",))
                else:
                    name = self.dice.choice([one for one in row if one not in keys])
                    changed = stored(self.lake, source, {name: another(self.dice, name, row[name])})
                    connection.execute(mirror.update().where(*mine).values(changed))
                    put.add(("value", name))
        return put


@pytest.fixture(params=databases())
def source(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.mark.in_turn
@pytest.mark.parametrize("key", ["number", "both"])
def test_planted_differences_are_found_and_repaired(
    source: Engine, tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(source, source, tmp_path, capsys, key=key)
    circle.write(300)
    circle.publish()
    for held in (["--output", "lake", "--mirrors"], ["--output", "lake"], ["--output", "files"]):
        code, told = circle.verify(*held)
        assert (code, told["waiting"], told["problem"]) == (0, 0, None), told
    put = circle.plant(40)
    code, told = circle.verify("--output", "lake", "--mirrors", "--repair")
    found = told["differences"]
    assert code == 1
    assert len(found) == told["missing"] + told["extra"] + told["value"] == told["repaired"] == 40
    assert {(one["kind"], *(v["column"] for v in one["values"])) for one in found} == put
    assert all(one["record_id"] is not None and one["status"] == "S" for one in found if one["kind"] != "extra")
    circle.publish()
    assert circle.verify("--output", "lake", "--mirrors")[0] == 0
    assert circle.verify("--output", "files")[0] == 0


@pytest.mark.in_turn
def test_what_is_inserted_before_the_repair_of_an_extra_object_stays(
    source: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    circle = Circle(source, source, tmp_path, capsys, key="number")
    circle.write(60)
    circle.publish()
    rows = [random_row(circle.dice, "number", 1) | {"id": number} for number in (991, 992)]
    mirror = sa.Table("usr__mirror", sa.MetaData(), autoload_with=circle.lake)
    described = reflect_table(circle.source, "usr")
    with circle.lake.begin() as connection:
        connection.execute(mirror.insert(), [stored(circle.lake, described, row) for row in rows])

    def late(*given: Any) -> int:
        with circle.source.begin() as connection:
            connection.execute(circle.table.insert(), rows[:1])
        return repair(*given)

    with monkeypatch.context() as patched:
        patched.setattr(verifying, "repair", late)
        code, told = circle.verify("--output", "lake", "--mirrors", "--repair")
    assert (code, told["extra"]) == (1, 2)
    circle.publish()
    code, told = circle.verify("--output", "lake", "--mirrors")
    assert code == 0, told["differences"]


@pytest.mark.in_turn
def test_rows_on_their_way_are_no_differences(
    source: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(source, source, tmp_path, capsys, key="both")
    circle.write(200)
    circle.publish()
    circle.write(30)
    code, told = circle.verify("--output", "lake", "--mirrors", "--wait", "0")
    assert code == 0
    assert 0 < told["waiting"] <= 30
    assert circle.command("run", "--until-empty")[0] == 0
    code, told = circle.verify("--output", "lake", "--mirrors", "--wait", "0")
    assert code == 0
    assert 0 < told["waiting"] <= 30  # the change tables have them, the mirrors not yet
    circle.apply()
    assert circle.verify("--output", "lake", "--mirrors", "--wait", "0")[1]["waiting"] == 0


@pytest.mark.in_turn
def test_under_load_an_equal_pair_is_never_told_to_differ(
    source: Engine, sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SQLite lets one write at a time: its publisher and its writer would only wait for each other."""
    if source is sqlite:
        pytest.skip("one writer at a time")
    circle = Circle(source, sqlite, tmp_path, capsys, key="both")
    circle.write(100)
    circle.publish()
    stop = Event()

    def work() -> None:
        while not stop.is_set():
            circle.write(3)

    writer = Thread(target=work)
    with in_thread(Publisher(load(circle.file, {}))):
        writer.start()
        try:
            for _ in range(2):
                for held in (
                    ["--output", "lake"],
                    ["--output", "files"],
                    ["--output", "lake", "--mirrors"],
                ):
                    code, told = circle.verify(*held, "--wait", "0")
                    assert code == 0, told
                circle.apply()
        finally:
            stop.set()
            writer.join()


def test_reports_and_metrics(sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="number")
    circle.write(50)
    circle.publish()
    circle.plant(4)
    files = [tmp_path / f"report.{ending}" for ending in ("html", "json", "txt")]
    arguments = [word for file in files for word in ("--report", str(file))]
    code, out = circle.command(
        *(
            "verify",
            "--output",
            "lake",
            "--mirrors",
            *arguments,
            "--metrics",
            str(tmp_path / "m.prom"),
        )
    )
    assert code == 1
    assert "usr: 4 objects differ" in out
    assert "Source and output differ." in files[0].read_text()
    assert json.loads(files[1].read_text())["equal"] is False
    assert out.strip() in files[2].read_text()
    assert re.search(r'differences\{kind="missing",[^}]*\} 1\b', (tmp_path / "m.prom").read_text())
    assert circle.command("verify", "--output", "lake", "--report", "x.pdf")[0] == 64


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
def test_files_of_every_form(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str], file_format: str
) -> None:
    more = f"""
    [[output]]
    name = "more"
    format = "change-tables"
    sink = "files"
    path = "{tmp_path / "more"}"
    file_format = "{file_format}"
    row_files = {{full_load = "files", gzip = {"false" if file_format == "parquet" else "true"}}}
    """
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="both", more=more)
    circle.write(100)
    circle.publish()
    assert circle.command("refresh", "usr")[0] == 0
    circle.publish()
    circle.write(30)
    circle.publish()
    code, told = circle.verify("--output", "more")
    assert (code, told["problem"]) == (0, None), str(told)
    with sqlite.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER event_log_usr_delete")
        gone = connection.exec_driver_sql("DELETE FROM usr WHERE part = 0").rowcount
    assert circle.verify("--output", "more")[1]["extra"] == gone > 0


def test_policies_count(sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = """
    steps = [
      {do = "where", condition = "new.size != null && new.size > 0", when_leaving = "delete"},
      {do = "hash", attributes = ["name"], secret = "a secret of 32 characters or more"},
      {do = "drop", attributes = ["note"]},
      {do = "rename", attributes = {pay = "salary"}},
    ]
    """
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="number", more=steps)
    circle.write(150)
    circle.publish()
    code, told = circle.verify("--output", "files")
    assert (code, told["problem"]) == (0, None), told
    assert 0 < told["rows"] < ROWS


def test_a_vault_is_compared_by_its_associations(
    sqlite: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="both")
    circle.write(60)
    circle.publish()
    with sqlite.connect() as connection:
        keys = connection.execute(sa.text("SELECT DISTINCT table_key FROM event_log")).scalars().all()
        there = connection.execute(sa.text("SELECT count(*) FROM usr")).scalar_one()
    vault = tmp_path / "vault.txt"
    vault.write_text("".join(f"{key},table=usr\n" for key in keys))
    code, told = circle.verify("--output", "lake", "--associations", str(vault))
    gone = len(keys) - there
    assert (code, told["extra"], told["missing"], told["value"]) == (1 if gone else 0, gone, 0, 0)
    vault.write_text("")
    assert circle.verify("--output", "lake", "--associations", str(vault))[1]["missing"] == there


@pytest.mark.parametrize("mode", ["json", "avro"])
def test_a_topic_holds_the_rows_that_its_messages_add_up_to(
    sqlite: Engine, mock_cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], mode: str
) -> None:
    more = f"""
[[output]]
name = "bus"
format = "messages"
sink = "kafka"
servers = "{mock_cluster}"
transactional_id = "verify-{mode}"
marks_topic = "verify_{mode}.marks"
create_topics = true
partitions = 3
messages = {{encoding = "{mode}", topic = "verify_{mode}.{{table}}", metadata_topic = "verify_meta", mode = "{"metadata" if mode == "avro" else "bare"}"}}
"""
    circle = Circle(sqlite, sqlite, tmp_path, capsys, key="both", more=more)
    circle.write(150)
    circle.publish()
    code, told = circle.verify("--output", "bus")
    assert (code, told["problem"], told["waiting"]) == (0, None, 0), str(told)
    with sqlite.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER event_log_usr_update")
        connection.exec_driver_sql("UPDATE usr SET size = 77 WHERE part = 1")
        many = connection.exec_driver_sql("SELECT count(*) FROM usr WHERE part = 1").scalar_one()
    code, told = circle.verify("--output", "bus", "--repair")
    assert (code, told["value"], told["repaired"]) == (1, many, many)
    circle.publish()
    assert circle.verify("--output", "bus")[0] == 0


@pytest.mark.in_turn
def test_what_waits_for_another_output_only_hides_no_difference(
    source: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = Circle(source, source, tmp_path, capsys, key="number")
    circle.write(60)
    circle.publish()
    assert circle.command("outputs", "pause", "files")[0] == 0
    with source.begin() as connection:
        connection.execute(circle.table.update().values(size=4711))
    circle.publish()
    for held in (["--output", "lake"], ["--output", "lake", "--mirrors"]):
        code, told = circle.verify(*held, "--wait", "0")
        assert (code, told["waiting"], told["problem"]) == (0, 0, None), told
    code, told = circle.verify("--output", "files", "--wait", "0")
    assert (code, told["value"]) == (0, 0), told
    assert told["waiting"] == told["rows"] > 0
    circle.plant(8)
    code, told = circle.verify("--output", "lake", "--mirrors", "--wait", "0")
    assert (code, told["waiting"]) == (1, 0), told
    assert told["missing"] + told["value"] + told["extra"] == 8
    assert circle.command("outputs", "resume", "files")[0] == 0
    circle.publish()
    assert circle.verify("--output", "files", "--wait", "0")[1]["waiting"] == 0


MORE = """
[[output]]
name = "{name}"
sink = "{kind}"
path = "{path}"
mode = "{name}"
{catalog}
"""


@pytest.fixture(params=sorted(LAKES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class LakeCircle(Circle):
    """The same with a lake that has mirrors and one that has change tables."""

    def __init__(self, source: Engine, kind: str, folder: Path, capsys: Any, key: str) -> None:
        self.lakes: dict[str, Lake] = {
            "mirror": LAKES[kind](folder / "mirror", "mirror"),
            "append": LAKES[kind](folder / "append", "append"),
        }
        more = ""
        for name, lake in self.lakes.items():
            catalog = ""
            if isinstance(lake.settings, IcebergOutput):
                catalog = f'catalog = {{type = "sql", uri = "{lake.settings.catalog["uri"]}"}}'
            more += MORE.format(name=name, kind=kind, path=lake.settings.path, catalog=catalog)
        super().__init__(source, source, folder, capsys, key=key, more=more)

    def put(self, rows: pa.Table, *, over: bool) -> None:
        """Writes rows into the mirror as somebody else would: over all that there is, or beside it."""
        settings = self.lakes["mirror"].settings
        if not isinstance(settings, IcebergOutput):
            place = DeltaTable(f"{settings.path}/usr")
            write_deltalake(place, rows, mode="overwrite" if over else "append")
            return
        table: Table = open_catalog(**settings.properties).load_table((settings.namespace, "usr"))
        table.overwrite(rows) if over else table.append(rows)


@pytest.mark.in_turn
@pytest.mark.parametrize("key", ["number", "both"])
def test_what_is_planted_in_a_mirror_is_found_and_repaired(
    sqlite: Engine, kind: str, tmp_path: Path, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    circle = LakeCircle(sqlite, kind, tmp_path, capsys, key)
    circle.write(300)
    circle.publish()
    assert _told(circle, "mirror") == (0, None, 0, 0, 0, 0)
    rows = circle.lakes["mirror"].read("usr")
    assert rows is not None
    assert rows.num_rows > 20
    number = [field.name for field in rows.schema].index("size")
    sizes = rows.column(number).to_pylist()
    sizes[10:15] = [(size or 0) + 1 for size in sizes[10:15]]
    changed = rows.set_column(number, rows.schema.field(number), pa.array(sizes, rows.schema.field(number).type))
    circle.put(changed.slice(3), over=True)
    twice = rows.slice(30, 2)
    circle.put(twice, over=False)
    extra = rows.slice(0, 1).set_column(
        rows.schema.get_field_index("id"),
        rows.schema.field("id"),
        pa.array([-7 if key == "number" else "nobody"], rows.schema.field("id").type),
    )
    circle.put(extra, over=False)
    assert _told(circle, "mirror", "--repair") == (1, None, 3, 1, 5, 2)
    circle.publish()
    assert _told(circle, "mirror", "--repair") == (1, None, 2, 0, 0, 0)  # what stood there twice has gone
    circle.publish()
    assert _told(circle, "mirror") == (0, None, 0, 0, 0, 0)


def test_a_change_table_is_compared_by_what_its_rows_add_up_to(
    sqlite: Engine, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever order its files have, and whatever columns came and went between them."""
    circle = LakeCircle(sqlite, kind, tmp_path, capsys, "both")
    for _ in range(3):
        circle.write(80)
        circle.publish()
    assert _told(circle, "append") == (0, None, 0, 0, 0, 0)
    with sqlite.begin() as connection:
        connection.exec_driver_sql("DROP TRIGGER event_log_usr_update")
        connection.exec_driver_sql("UPDATE usr SET pay = 77.5 WHERE part = 1")
        many = connection.exec_driver_sql("SELECT count(*) FROM usr WHERE part = 1").scalar_one()
    assert _told(circle, "append", "--repair") == (1, None, 0, 0, many, 0)
    circle.publish()
    assert _told(circle, "append") == (0, None, 0, 0, 0, 0)


def _told(circle: Circle, output: str, *arguments: str) -> tuple[Any, ...]:
    code, told = circle.verify("--output", output, *arguments)
    assert not told["waiting"], told
    return (code, told["problem"], told["missing"], told["extra"], told["value"], told["double"])
