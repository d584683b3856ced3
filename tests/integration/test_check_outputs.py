"""What `eventlog check` says of outputs: folders that cannot be written, addresses where nobody listens; and the command."""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, inspect

from eventlog.admin.check import Point, PointLevel
from eventlog.admin.check.outputs import output_points
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE, EventlogError
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput, HttpOutput, StdoutOutput
from tests.acceptance.command import eventlog, ok
from tests.support.servers import free_port


def of(output: OutputConfig) -> Point:
    (point,) = output_points(Config(output=(output,)))
    return point


def test_a_folder_that_stands_is_ok_and_stays_as_it_is(tmp_path: Path) -> None:
    assert of(FilesOutput(path=str(tmp_path))).level is PointLevel.OK
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_still_to_be_made_is_a_warning(tmp_path: Path) -> None:
    point = of(FilesOutput(path=str(tmp_path / "mount" / "out")))
    assert (point.level, point.exit_code) == (PointLevel.WARNING, 0)
    assert not (tmp_path / "mount").exists()


@pytest.mark.parametrize("below", ["", "/out"])
def test_a_file_where_the_folder_should_be_fails(tmp_path: Path, below: str) -> None:
    (tmp_path / "taken").touch()
    point = of(FilesOutput(path=f"{tmp_path}/taken{below}"))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_CONFIG)
    assert f"{tmp_path}/taken is something else" in point.said


def test_a_folder_that_may_not_be_written_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    if os.geteuid() == 0:  # whom the system lets write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: mode & ~(Path(path).stat().st_mode >> 6) == 0)
    point = of(FilesOutput(path=str(tmp_path)))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_CONFIG)
    assert "cannot be written" in point.said


@contextmanager
def listener() -> Iterator[int]:
    """Takes connections and says nothing on them."""
    with socket.create_server(("127.0.0.1", 0)) as open_port:
        taker = threading.Thread(target=_take_one, args=(open_port,))
        taker.start()
        yield open_port.getsockname()[1]
        taker.join()


def _take_one(open_port: socket.socket) -> None:
    taken, _ = open_port.accept()
    taken.close()


def test_an_address_where_somebody_listens_is_ok() -> None:
    with listener() as port:
        assert of(HttpOutput(url=f"http://127.0.0.1:{port}/in?token=s3cret")).level is PointLevel.OK


def test_an_address_where_nobody_listens_fails_and_shows_no_secret() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    point = of(HttpOutput(url=f"http://127.0.0.1:{port}/in?token=s3cret"))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert f"http://127.0.0.1:{port} cannot be reached" in point.said
    assert "s3cret" not in point.said


def test_an_https_address_that_speaks_no_tls_fails() -> None:
    with listener() as port:
        point = of(HttpOutput(url=f"https://127.0.0.1:{port}/in", connect_timeout=5))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    point = of(FilesOutput(path=str(tmp_path)))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "is full" in point.said


def test_a_database_for_change_tables_is_tried_and_stays_as_it_is(engine: Engine) -> None:
    with engine.connect() as connection:  # a file is made by whoever connects first
        connection.exec_driver_sql("SELECT 1")
    url = engine.url.render_as_string(hide_password=False)
    assert of(DatabaseOutput(url=url)).level is PointLevel.OK
    assert inspect(engine).get_table_names() == []


def test_a_schema_that_is_not_there_fails(postgresql: Engine) -> None:
    url = postgresql.url.render_as_string(hide_password=False)
    point = of(DatabaseOutput(url=url, schema="nowhere"))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "has no schema nowhere" in point.said
    assert "Create it" in str(point.mend)


def test_a_login_that_may_make_no_tables_fails(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE reads_only LOGIN")
        connection.exec_driver_sql("CREATE SCHEMA closed")
        connection.exec_driver_sql("GRANT USAGE ON SCHEMA closed TO reads_only")
    url = postgresql.url.set(username="reads_only").render_as_string(hide_password=False)
    point = of(DatabaseOutput(url=url, schema="closed"))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "permission denied" in point.said
    assert point.mend == "GRANT USAGE, CREATE ON SCHEMA closed TO reads_only gives the right."


def test_a_database_that_does_not_answer_fails_and_shows_no_password() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    point = of(DatabaseOutput(url=f"postgresql+psycopg://me:s3cret@127.0.0.1:{port}/lake"))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "s3cret" not in f"{point.said} {point.mend}"


def test_a_database_file_that_is_still_to_be_made_is_a_warning(tmp_path: Path) -> None:
    point = of(DatabaseOutput(url=f"sqlite:///{tmp_path}/lake.db"))
    assert point.level is PointLevel.WARNING
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_does_not_answer_fails() -> None:
    point = of(KafkaOutput(servers=f"127.0.0.1:{free_port()}", timeout=0.5))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "does not answer" in point.said
    assert point.mend == "See that a broker listens there, or change the output's `servers`."


def test_a_topic_that_is_not_there_is_a_warning_unless_it_may_be_made(mock_cluster: str) -> None:
    """The stand-in has every topic that somebody has asked for by its name, and no other."""
    output = KafkaOutput(servers=mock_cluster, format="xds", topic="check.none")
    point = of(output)
    assert point.level is PointLevel.WARNING
    assert "has no topic check.none" in point.said
    assert of(replace(output, create_topics=True)).level is PointLevel.OK
    messages = MessageSettings(mode="metadata", metadata_topic="check.metadata")
    assert "check.metadata" in of(KafkaOutput(servers=mock_cluster, messages=messages)).said


@pytest.mark.parametrize(
    "form",
    [
        {"format": "messages", "messages": MessageSettings(mode="registry", encoding="avro")},
        {"format": "debezium", "debezium": DebeziumSettings(encoding="avro")},
    ],
)
def test_a_registry_that_does_not_answer_fails(mock_cluster: str, form: dict[str, Any]) -> None:
    registry = f"http://127.0.0.1:{free_port()}"
    point = of(KafkaOutput(servers=mock_cluster, registry=registry, **form))
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, EX_UNAVAILABLE)
    assert "schema registry" in point.said


def test_standard_output_is_always_there() -> None:
    assert of(StdoutOutput()).level is PointLevel.OK


def test_the_command_ends_with_the_code_of_the_first_failure(tmp_path: Path) -> None:
    place = f"sqlite:///{tmp_path / 'app.db'}"
    ok("install", "--database", place)
    assert ok("check", "--database", place).startswith("ok       configuration")
    (tmp_path / "eventlog.toml").write_text(
        f'[source]\nurl = "{place}"\n[[output]]\nsink = "http"\nurl = "http://127.0.0.1:1/"\n'
    )
    done = eventlog("check", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (done.returncode, told["exit_code"]) == (EX_UNAVAILABLE, EX_UNAVAILABLE)
    assert [point["name"] for point in told["points"] if point["level"] == "failure"] == ["output 1"]
    (tmp_path / "eventlog.toml").write_text("[sauce]\n")
    assert eventlog("check", cwd=tmp_path).returncode == EX_CONFIG


def test_a_file_that_is_only_read_fails_at_the_rights(tmp_path: Path) -> None:
    ok("install", "--database", f"sqlite:///{tmp_path / 'app.db'}")
    done = eventlog("check", "--database", f"sqlite:///file:{tmp_path / 'app.db'}?mode=ro&uri=true")
    assert done.returncode == EX_CONFIG
    assert "failure  rights" in done.stdout
    assert "readonly" in done.stdout


def test_what_nobody_foresaw_is_a_failure_of_that_output_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_folder: Path) -> None:
        raise RuntimeError("the folder is odd")

    monkeypatch.setattr(shutil, "disk_usage", breaks)
    odd, other = output_points(Config(output=(FilesOutput(path=str(tmp_path)), StdoutOutput())))
    assert (odd.level, odd.exit_code) == (PointLevel.FAILURE, EventlogError.exit_code)
    assert odd.said == "This could not be looked at: RuntimeError: the folder is odd."
    assert other.level is PointLevel.OK
