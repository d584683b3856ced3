"""`eventlog convert` to change tables and messages and from captured streams, as a user calls it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_CONFIG, EX_DATA, EX_USAGE
from tests.acceptance.command import eventlog, ok
from tests.support.converting import log_row, write_lines
from tests.support.servers_kafka import consumed, stand_in

SCHEMA: dict[str, Any] = {
    "tables": [
        {
            "schema": "indirect",
            "name": "usr",
            "columns": [{"name": "idu", "type": "integer", "key": 1}, {"name": "fname", "type": "varchar(64)"}],
        }
    ]
}
HERE = ("--engine", "local[1]")
SHOP = ("--tables", "1=shop.customer", "--tables", "2=shop.purchase", "--key", "shop.customer=id")


@pytest.fixture
def log(tmp_path: Path) -> tuple[str | Path, ...]:
    """A log of two rows, and its schema, as words of the command line."""
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    file = write_lines(tmp_path / "log.jsonl", [log_row(1), log_row(2, event_type=4, column_name=None, new_value=None)])
    return file, "--schema", tmp_path / "schema.json"


def test_change_tables_are_folders(tmp_path: Path, log: tuple[str | Path, ...]) -> None:
    last = ok("convert", *log, "--to", "change-tables", "--out", tmp_path / "rows", *HERE).splitlines()[-1]
    assert last == "2 rows, 2 changes, 1 part (S 2)."
    table = parquet.read_table(tmp_path / "rows" / "indirect.usr__ct" / "part-00000.parquet")
    assert table.column("header__change_oper").to_pylist() == ["I", "D"]
    ok("convert", *log, "--to", "change-tables", "--format", "csv", "--out", tmp_path / "texts", *HERE)
    assert (tmp_path / "texts" / "indirect.usr__ct" / "part-00000.csv").read_text().startswith("header__change_seq,")


def test_messages_are_folders_by_topic(tmp_path: Path, log: tuple[str | Path, ...]) -> None:
    told = ("--to", "messages", "--metadata-topic", "meta")
    ok("convert", *log, *told, "--out", tmp_path / "lines", *HERE)
    lines = (tmp_path / "lines" / "indirect.usr" / "part-00000.jsonl").read_text().splitlines()
    assert [json.loads(line)["message"]["headers"]["operation"] for line in lines] == ["INSERT", "DELETE"]
    assert len((tmp_path / "lines" / "meta" / "part-00000.jsonl").read_text().splitlines()) == 1
    ok("convert", *log, *told, "--format", "avro", "--out", tmp_path / "containers", *HERE)
    assert (tmp_path / "containers" / "indirect.usr" / "part-00000.avro").read_bytes().startswith(b"Obj\x01")


def test_a_configuration_says_how_change_tables_look_and_who_writes_them(
    tmp_path: Path, log: tuple[str | Path, ...]
) -> None:
    (tmp_path / "c.toml").write_text(
        '[[output]]\nsink = "database"\nurl = "sqlite:///elsewhere.db"\ntask = "mine"\nformat = "change-tables"\n'
        '[output.change_tables]\nsuffix = "_changes"\n'
    )
    target = ("--to", "change-tables", "--to-database", "sqlite:///here.db", "--config", "c.toml")
    ok("convert", *log, *target, "--out", "out", cwd=tmp_path)
    with sqlite3.connect(tmp_path / "here.db") as connection:
        assert connection.execute("SELECT count(*) FROM usr_changes").fetchall() == [(2,)]
        assert connection.execute("SELECT task FROM eventlog_position").fetchall() == [("mine",)]
    connection.close()
    assert not (tmp_path / "elsewhere.db").exists()


@pytest.mark.parametrize(
    "named, file",
    [((), "indirect.usr__ct/part-00000.json"), (("--output", "lake"), "indirect.usr_c/part-00000.csv.gz")],
)
def test_the_settings_of_files_are_those_of_the_output_that_is_meant(
    tmp_path: Path, log: tuple[str | Path, ...], named: tuple[str, ...], file: str
) -> None:
    (tmp_path / "c.toml").write_text(
        '[[output]]\nsink = "files"\npath = "documents"\n'
        '[[output]]\nsink = "files"\npath = "a"\nformat = "change-tables"\nfile_format = "json"\n'
        '[[output]]\nname = "lake"\nsink = "files"\npath = "b"\nformat = "change-tables"\nfile_format = "csv"\n'
        'row_files.preset = "qlik"\nchange_tables.suffix = "_c"\n'
    )
    ok("convert", *log, "--to", "change-tables", "--config", "c.toml", *named, "--out", "out", *HERE, cwd=tmp_path)
    assert (tmp_path / "out" / file).exists()


def test_messages_go_to_kafka(tmp_path: Path, log: tuple[str | Path, ...]) -> None:
    with stand_in() as servers:
        ok("convert", *log, "--to", "messages", "--kafka", servers, "--out", tmp_path / "out")
        found = consumed(servers, "indirect.usr")
    assert [one.key for one in found] == [b"1", b"1"]
    assert [json.loads(one.value or b"")["headers"]["operation"] for one in found] == ["INSERT", "DELETE"]


def test_a_stream_of_gbase_with_damage_at_its_end(tmp_path: Path) -> None:
    ok("emulate", "gbase", "--rows", "50", "--out", tmp_path / "capture.bin")
    words = ("convert", "gbase", "capture.bin", *SHOP, *HERE)
    whole = ok(*words, "--out", "whole", cwd=tmp_path).splitlines()[-1]
    with (tmp_path / "capture.bin").open("ab") as file:
        size = file.tell()
        file.write(b"\xff" * 20)
    done = eventlog(*words, "--out", "damaged", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (65, whole)
    assert f"capture.bin, byte {size}: " in done.stderr
    assert "Everything before it is converted." in done.stderr
    assert "_DAMAGED in the place of _SUCCESS" in done.stderr
    assert not (tmp_path / "damaged" / "_SUCCESS").exists()
    assert str(size) in json.loads((tmp_path / "damaged" / "_DAMAGED").read_bytes())["damage"]
    assert (tmp_path / "damaged" / "part-00000.xml").read_bytes() == (
        tmp_path / "whole" / "part-00000.xml"
    ).read_bytes()


@pytest.mark.parametrize(
    "words, code, said",
    [
        (
            "--code-page cp1251",
            EX_USAGE,
            "--code-page is an option of `eventlog convert gbase` and `eventlog convert linter`",
        ),
        ("--mark", EX_USAGE, "--mark is an option of `eventlog convert database`; this is `eventlog convert files`"),
        ("--log event_log", EX_USAGE, "--log is an option of `eventlog convert database`"),
        ("--database sqlite:// --snapshot .", EX_USAGE, "not by both"),
        ("--snapshot .", EX_CONFIG, "Use --schema FILE"),
        ("--schema nowhere.json", EX_DATA, "nowhere.json cannot be read"),
        ("--part-events 0", EX_USAGE, "--part-events"),
        ("--engine locale", EX_USAGE, "'locale' is none of auto, spark, local and local[4]"),
        (
            "--snapshot hdfs://host/tables --engine local[2]",
            EX_USAGE,
            "--snapshot hdfs://host/tables is an address, and",
        ),
        ("hdfs://host/more --engine local", EX_USAGE, "hdfs://host/more is an address, and the local engine"),
        (
            "s3://bucket/more --engine local --mark",
            EX_USAGE,
            "--mark is an option of `eventlog convert database`; this is `eventlog convert files`",
        ),
        ("s3://me:secret@bucket/more --engine local", EX_CONFIG, "An input is no address of a bucket"),
        ("s3a://bucket/more --kafka b:1 --to messages", EX_USAGE, "--kafka cannot be combined with an address"),
        ("s3a://bucket/more --to messages", EX_USAGE, "--to messages needs --schema FILE"),
        ("--to change-tables --format avro", EX_USAGE, "it takes parquet or csv"),
        ("--to messages --format csv", EX_USAGE, "it takes json or avro"),
        ("--format parquet", EX_USAGE, "it has no choice of files"),
        ("--metadata-topic m", EX_USAGE, "--metadata-topic needs --to messages"),
        ("--to-database sqlite://", EX_USAGE, "--to-database needs --to change-tables"),
        ("--kafka b:1", EX_USAGE, "--kafka needs --to messages"),
        ("--to change-tables --to-database sqlite:// --format csv", EX_USAGE, "there are none"),
        ("--key usr=idu", EX_USAGE, "--key is an option of `eventlog convert gbase`"),
        ("--dirty", EX_USAGE, "--dirty is an option of `eventlog convert gbase`"),
        ("gbase a.jsonl --key usr", EX_USAGE, "--key usr is not written as NAME=VALUE"),
        ("gbase a.jsonl --tables 111=", EX_USAGE, "--tables 111= is not written as NAME=VALUE"),
        (
            "gbase a.jsonl --mark",
            EX_USAGE,
            "--mark is an option of `eventlog convert database`; this is `eventlog convert gbase`",
        ),
        (
            "gbase a.jsonl --master local[2]",
            EX_USAGE,
            "--master is an option of `eventlog convert files` and `eventlog convert database`",
        ),
        ("linter a.jsonl", EX_USAGE, "Missing option '--schema'"),
        ("linter a.jsonl --schema s.json --key usr=idu", EX_USAGE, "--key is an option of `eventlog convert gbase`"),
    ],
)
def test_what_does_not_go_together_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: str,
    code: int,
    said: str,
) -> None:
    write_lines(tmp_path / "a.jsonl", [log_row(1)])
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    monkeypatch.chdir(tmp_path)
    assert exit_code(["convert", *([] if ".jsonl" in words else ["a.jsonl"]), *words.split(), "--out", "out"]) == code
    wrong = capsys.readouterr().err
    assert said in wrong
    assert "Traceback" not in wrong
    assert not (tmp_path / "out").exists()
