"""Who reads from addresses and writes to them: Spark, or the local engine, by copies on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from eventlog.cli.main import exit_code
from eventlog.convert import ordering
from eventlog.convert.ordering import order_of
from eventlog.convert.targets import ConversionOrder

WORDS: dict[str, Any] = {
    **dict.fromkeys(ConversionOrder.__struct_fields__),
    "inputs": ("a.csv",),
    "source": "log",
    "out": "s3://bucket/p/",
    "engine": "auto",
    "follow": False,
    "resume": False,
    "conf": (),
}
OWN = ("addresses", "stored", "fetched")


@pytest.mark.parametrize(
    "words,spark,stored",
    [
        ({"engine": "local"}, True, True),
        ({"engine": "spark"}, False, False),
        ({}, True, False),
        ({}, False, True),
        ({"jobs": 2}, True, True),
        ({"resume": True}, True, True),
        ({"master": "local"}, False, False),
        ({"follow": True, "engine": "local"}, False, False),
        ({"engine": "local", "out": "hdfs://host/p"}, True, False),
        ({"engine": "local", "inputs": ("s3://bucket/in",)}, True, True),
        ({"engine": "local", "inputs": ("hdfs://host/in",)}, True, False),
        ({"source": "gbase", "inputs": ("s3://bucket/in",)}, True, True),
        ({"engine": "local", "out": "folder"}, True, False),
    ],
)
def test_which_engine_writes_to_an_address(
    monkeypatch: pytest.MonkeyPatch, words: dict[str, Any], spark: bool, stored: bool
) -> None:
    monkeypatch.setattr(ordering, "is_there", lambda _: spark)
    given = {**WORDS, **words}
    order = order_of(given["source"], {name: given[name] for name in given if name not in OWN})
    assert order.stored == ("s3://bucket/p" if stored else "")
    assert not (stored and order.addresses)


@pytest.mark.parametrize("engine,here", [("local", True), ("spark", False)])
def test_which_engine_reads_from_an_address(engine: str, here: bool) -> None:
    """The local one from copies, which stand for the addresses."""
    given = {**WORDS, "engine": engine, "inputs": ("s3://bucket/in", "a.csv"), "snapshot": "gs://b/t", "out": "out"}
    order = order_of("log", {name: given[name] for name in given if name not in OWN})
    copies = [order.inputs[0], str(order.snapshot)]
    assert order.fetched == (dict(zip(copies, ["s3://bucket/in", "gs://b/t"], strict=True)) if here else {})
    assert order.inputs[1] == "a.csv"
    assert bool(order.addresses) is not here


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
