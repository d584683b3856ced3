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

from eventlog.check.outputs import output_points
from eventlog.check.point import Point, PointLevel
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.core.errors import EX_CONFIG, EX_UNAVAILABLE, OK, EventlogError
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.events.settings import DebeziumSettings
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput, StdoutOutput
from tests.acceptance.command import eventlog, ok
from tests.support.servers import free_port


def of(output: OutputConfig) -> Point:
    (point,) = output_points(Config(output=(output,)))
    return point


def expect_failure(output: OutputConfig, said: str, code: int = EX_UNAVAILABLE) -> Point:
    """The point of an output that fails with these words, and without a secret."""
    point = of(output)
    assert (point.level, point.exit_code) == (PointLevel.FAILURE, code)
    assert said in point.said
    assert "s3cret" not in f"{point.said} {point.mend}"
    return point


@pytest.mark.parametrize(
    "output, below, level",
    [
        (FilesOutput, "", PointLevel.OK),
        (FilesOutput, "mount/out", PointLevel.WARNING),
        (DatabaseOutput, "lake.db", PointLevel.WARNING),
    ],
    ids=["it stands", "a folder to be made", "a file to be made"],
)
def test_a_place_stays_as_it_is(tmp_path: Path, output: Any, below: str, level: PointLevel) -> None:
    place = f"{tmp_path}/{below}"
    made = output(path=place) if output is FilesOutput else output(url=f"sqlite:///{place}")
    assert (of(made).level, of(made).exit_code) == (level, OK)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "/out"])
def test_a_file_where_the_folder_should_be_fails(tmp_path: Path, below: str) -> None:
    (tmp_path / "taken").touch()
    expect_failure(FilesOutput(path=f"{tmp_path}/taken{below}"), f"{tmp_path}/taken is something else", EX_CONFIG)


def test_a_folder_that_may_not_be_written_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    if os.geteuid() == 0:  # whom the system lets write everywhere
        monkeypatch.setattr(os, "access", lambda path, mode: mode & ~(Path(path).stat().st_mode >> 6) == 0)
    expect_failure(FilesOutput(path=str(tmp_path)), "cannot be written", EX_CONFIG)


def test_a_full_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=0))
    expect_failure(FilesOutput(path=str(tmp_path)), "is full")


@contextmanager
def listener() -> Iterator[int]:
    """Takes a connection and says nothing on it."""

    def take_one() -> None:
        open_port.accept()[0].close()

    with socket.create_server(("127.0.0.1", 0)) as open_port:
        taker = threading.Thread(target=take_one)
        taker.start()
        yield open_port.getsockname()[1]
        taker.join()


def test_an_address_where_somebody_listens_is_ok_if_it_speaks_as_it_should() -> None:
    with listener() as port:
        assert of(HttpOutput(url=f"http://127.0.0.1:{port}/in?token=s3cret")).level is PointLevel.OK
    with listener() as port:
        expect_failure(HttpOutput(url=f"https://127.0.0.1:{port}/in", connect_timeout=5), "")


def test_addresses_where_nobody_listens_fail() -> None:
    port = free_port()
    expect_failure(
        HttpOutput(url=f"http://127.0.0.1:{port}/in?token=s3cret"), f"http://127.0.0.1:{port} cannot be reached"
    )
    expect_failure(DatabaseOutput(url=f"postgresql+psycopg://me:s3cret@127.0.0.1:{port}/lake"), "")
    point = expect_failure(KafkaOutput(servers=f"127.0.0.1:{port}", timeout=0.5), "does not answer")
    assert point.mend == "See that a broker listens there, or change the output's `servers`."


def test_a_database_for_change_tables_is_tried_and_stays_as_it_is(engine: Engine) -> None:
    with engine.connect() as connection:  # a file is made by whoever connects first
        connection.exec_driver_sql("SELECT 1")
    assert of(DatabaseOutput(url=engine.url.render_as_string(hide_password=False))).level is PointLevel.OK
    assert inspect(engine).get_table_names() == []


def test_a_schema_that_is_not_there_or_closed_fails(postgresql: Engine) -> None:
    with postgresql.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE reads_only LOGIN")
        connection.exec_driver_sql("CREATE SCHEMA closed")
        connection.exec_driver_sql("GRANT USAGE ON SCHEMA closed TO reads_only")
    url = postgresql.url.render_as_string(hide_password=False)
    point = expect_failure(DatabaseOutput(url=url, schema="nowhere"), "has no schema nowhere")
    assert "Create it" in str(point.mend)
    url = postgresql.url.set(username="reads_only").render_as_string(hide_password=False)
    point = expect_failure(DatabaseOutput(url=url, schema="closed"), "permission denied")
    assert point.mend == "GRANT USAGE, CREATE ON SCHEMA closed TO reads_only gives the right."


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
    expect_failure(KafkaOutput(servers=mock_cluster, registry=registry, **form), "schema registry")


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
    done = eventlog("check", "--database", f"sqlite:///file:{tmp_path / 'app.db'}?mode=ro&uri=true", "--no-config")
    assert (done.returncode, "failure  rights" in done.stdout, "readonly" in done.stdout) == (EX_CONFIG, True, True)
    (tmp_path / "eventlog.toml").write_text("[sauce]\n")
    assert eventlog("check", cwd=tmp_path).returncode == EX_CONFIG


def test_what_nobody_foresaw_is_a_failure_of_that_output_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(_folder: Path) -> None:
        raise RuntimeError("the folder is odd")

    monkeypatch.setattr(shutil, "disk_usage", breaks)
    odd, other = output_points(Config(output=(FilesOutput(path=str(tmp_path)), StdoutOutput())))
    assert (odd.level, odd.exit_code) == (PointLevel.FAILURE, EventlogError.exit_code)
    assert odd.said == "This could not be looked at: RuntimeError: the folder is odd."
    assert other.level is PointLevel.OK


@pytest.mark.parametrize("names, message", [("aa", "Two outputs are called a."), ("ab", "Two outputs go to files")])
def test_two_outputs_of_one_name_or_place_fail_as_the_publisher_would(tmp_path: Path, names: str, message: str) -> None:
    paths = {"aa": ("one", "two"), "ab": ("one", "one")}[names]
    outputs = tuple(FilesOutput(name=name, path=str(tmp_path / path)) for name, path in zip(names, paths, strict=True))
    *_, last = output_points(Config(output=outputs))
    assert (last.name, last.level, last.exit_code) == ("outputs", PointLevel.FAILURE, 78)
    assert last.said.startswith(message)
