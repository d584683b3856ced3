"""The publisher at a stream: captured bytes and a replication queue, in every format, once and from where it stopped."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from eventlog.cli.main import main
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import OccupiedError, SourceError
from eventlog.daemon.health import Ledger
from eventlog.daemon.publisher import Publisher
from eventlog.sources.stream.source import FileMarks

SEED = [
    "000000240000001D00000042000000C80000006F00000000000000040000000100000001633120696E74656765722C20633220766172636861722832302C302900",
    "00000018 00000000 00000042 000000C9 0000000000000000",
    "00000028 00000000 00000042 00000001 0000000B01746018 00000027 0000000067DFE90F 000007D5",
    "00000028 0000000F 00000042 00000028 0000000B01746050 00000027 0000006F 00000000 0B000000 0000000F 0009 616263616263616263",
    "00000024 00000000 00000042 00000002 0000000B017460A0 00000027 0000000067DFE90F",
]
"""A table, a heartbeat, and a transaction of one row."""


def config_of(place: Path, **changed: Any) -> Config:
    gbase = {"path": str(place / "stream.hex"), "tables": {"111": "shop.t1"}, "keys": {"shop.t1": ["c1"]}}
    settings: dict[str, Any] = {
        "source": {"kind": "gbase", "gbase": gbase | {"marks": str(place / "marks.json")}},
        "output": [
            {"sink": "files", "path": str(place / "xds")},
            {"sink": "files", "path": str(place / "tables"), "format": "change-tables", "file_format": "csv"},
            {"sink": "files", "path": str(place / "messages"), "format": "messages"},
            {"sink": "database", "url": f"sqlite:///{place / 'tables.db'}"},
        ],
    }
    return from_settings(settings | changed, {}, origin="the test")


def published(config: Config) -> list[int]:
    """How many events each round settled."""
    with Publisher(config) as publisher:
        return [report.finished for report in publisher.rounds(until_empty=True)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "stream.hex").write_text("\n".join(SEED))
    return tmp_path


def test_one_stream_becomes_every_format(place: Path) -> None:
    assert sum(published(config_of(place))) == 1
    assert (place / "marks.json.db").stat().st_mode & 0o777 == 0o600, "it has the values of rows"
    (document,) = (place / "xds").glob("*.xml")
    assert '<add class-name="t1"' in document.read_text()
    (rows,) = (place / "tables").glob("shop.t1__ct/*.csv")
    assert rows.read_text().splitlines()[1].endswith(",15,abcabcabc")
    (messages,) = (place / "messages").glob("*.jsonl")
    assert '"data":{"c1":15,"c2":"abcabcabc"}' in messages.read_text()
    with sqlite3.connect(place / "tables.db") as connection:
        assert connection.execute("SELECT header__change_oper, c1, c2 FROM t1__ct").fetchall() == [
            ("I", 15, "abcabcabc")
        ]
    connection.close()


def test_one_publisher_at_a_time(place: Path) -> None:
    with Publisher(config_of(place)) as first, Publisher(config_of(place)) as second:
        first.run_once()
        with pytest.raises(OccupiedError, match="Another publisher works on the CDC stream"):
            second.run_once()


def test_who_cannot_say_goodbye_to_the_log_gives_the_stream_to_the_next(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise SourceError("the connection was lost", may_pass=True)

    first = Publisher(config_of(place))
    first.run_once()
    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "enter", away)
        first.close()
    with Publisher(config_of(place)) as second:
        second.run_once()
        assert second.post.tenure is not None


def test_a_stream_has_an_identity_and_an_epoch_in_its_marks(place: Path) -> None:
    tenures = []
    for _ in range(2):
        with Publisher(config_of(place)) as publisher:
            with pytest.raises(OccupiedError):
                publisher.post.confirm()
            publisher.run_once()
            publisher.post.confirm()
            tenures.append(publisher.post.tenure)
            marks = FileMarks(Path(publisher.config.source.marks))
    first, second = tenures
    assert first is not None
    assert second is not None
    assert (first.log, first.name) == (second.log, second.name) == (marks.get("log"), publisher.post.name)
    assert first.epoch < second.epoch == int(marks.get("epoch") or 0)
    assert marks.all().keys() == {"log", "epoch", "stream"}


def test_outputs_of_a_stream_are_paused_and_asked_for_as_those_of_a_log(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    (place / "eventlog.toml").write_text(
        '[source]\nkind = "gbase"\n[source.gbase]\npath = "stream.hex"\ntables = { "111" = "shop.t1" }\n'
        'keys = { "shop.t1" = ["c1"] }\n[[output]]\nname = "one"\nsink = "files"\npath = "one"\n'
        '[[output]]\nname = "two"\nsink = "files"\npath = "two"\n'
    )

    def ran(*arguments: str) -> str:
        result = CliRunner().invoke(main, [*arguments, "--config", "eventlog.toml"])
        assert result.exit_code == 0, result.output
        return result.output

    stream = (place / "stream.hex").read_text()
    (place / "stream.hex").write_text("")
    ran("run", "--until-empty")
    ran("outputs", "pause", "two")
    (place / "stream.hex").write_text(stream)
    ran("run", "--until-empty")
    assert len(list((place / "one").glob("*.xml"))) == 1
    assert not list((place / "two").glob("*.xml"))
    assert "c1=15" in ran("log")
    assert "two" in ran("status")
    explained = ran("explain", "1")
    assert "until somebody resumes the output" in explained
    assert '{"c2": "abcabcabc"}' in explained
    assert '<add-attr attr-name="c2">' in explained
    ran("outputs", "resume", "two")
    ran("run", "--until-empty")
    assert len(list((place / "two").glob("*.xml"))) == 1
    assert "No rows" in ran("log")
    gone = CliRunner().invoke(main, ["explain", "1", "--config", "eventlog.toml"])
    assert "The event log event_log has no row 1" in str(gone.exception)
