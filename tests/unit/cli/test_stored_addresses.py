"""Who reads from addresses and writes to them: Spark, or the local engine, by copies on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eventlog.cli.main import exit_code
from eventlog.convert import command, orders
from eventlog.convert.orders import Order, order_of


def ordered(name: str, line: str) -> Order:
    """What a command makes of its words."""
    return order_of(name, getattr(command, name).make_context(name, line.split()).params)


@pytest.mark.parametrize(
    "name,line,spark,stored",
    [
        ("files", "a.csv --out s3://bucket/p/ --engine local", True, True),
        ("files", "a.csv --out s3://bucket/p/ --engine spark", False, False),
        ("files", "a.csv --out s3://bucket/p/", True, False),
        ("files", "a.csv --out s3://bucket/p/", False, True),
        ("files", "a.csv --out s3://bucket/p/ --engine local[2]", True, True),
        ("files", "a.csv --out s3://bucket/p/ --master local", False, False),
        ("follow", "sqlite:// --out s3://bucket/p/", True, False),
        ("files", "a.csv --out hdfs://host/p --engine local", True, False),
        ("files", "s3://bucket/in --out s3://bucket/p/ --engine local", True, True),
        ("files", "hdfs://host/in --out s3://bucket/p/ --engine local", True, False),
        ("gbase", "s3://bucket/in --out s3://bucket/p/", True, True),
        ("files", "a.csv --out folder --engine local", True, False),
    ],
)
def test_which_engine_writes_to_an_address(
    monkeypatch: pytest.MonkeyPatch, name: str, line: str, spark: bool, stored: bool
) -> None:
    monkeypatch.setattr(orders, "is_there", lambda _: spark)
    places = ordered(name, line).places
    assert places.stored == ("s3://bucket/p" if stored else "")
    assert not (stored and places.addresses)


@pytest.mark.parametrize("engine,here", [("local", True), ("spark", False)])
def test_which_engine_reads_from_an_address(engine: str, here: bool) -> None:
    """The local one from copies, which stand for the addresses."""
    order = ordered("files", f"s3://bucket/in a.csv --snapshot gs://b/t --out out --engine {engine}")
    copies = [order.inputs[0], getattr(order.source, "snapshot", None)]
    assert order.places.fetched == (dict(zip(copies, ["s3://bucket/in", "gs://b/t"], strict=True)) if here else {})
    assert order.inputs[1] == "a.csv"
    assert bool(order.places.addresses) is not here


@pytest.mark.parametrize("name", [*command.COMMANDS])
def test_a_command_has_no_more_options_than_a_page_holds(name: str) -> None:
    options = {option.opts[0] for option in getattr(command, name).params} - {"--debug"}
    assert len([option for option in options if option.startswith("--")]) <= 18


@pytest.mark.parametrize(
    "address,said",
    [
        ("s3://key:secret@bucket/p", "--out is no address of a bucket and a prefix, as s3://BUCKET/PREFIX."),
        ("ftp://host/p", "--out ftp:/host/p is an address of no file system."),
        ("hdfs://host/p", "is an address, and the local engine reads and writes folders."),
    ],
)
def test_an_address_that_is_none_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], address: str, said: str
) -> None:
    assert exit_code(["convert", str(tmp_path / "none.csv"), "--out", address, "--engine", "local"]) in (64, 78)
    assert said in " ".join(capsys.readouterr().err.split())


def test_without_the_library_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    assert exit_code(["convert", str(tmp_path / "none.csv"), "--out", "s3://b/p", "--engine", "local"]) == 78
    assert "needs the package obstore" in " ".join(capsys.readouterr().err.split())
