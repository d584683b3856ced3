"""`eventlog convert follow`: batch after batch of a log that grows, each row once, whatever ended it before."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from sqlalchemy import Engine

from eventlog.care.rows import hold, release
from eventlog.cli.main import exit_code
from eventlog.convert.commit import WORK, Summary
from eventlog.core.errors import SinkError
from eventlog.sources.stream.claim import Claim
from eventlog.sql.log import Log
from eventlog_spark import batches as converting
from eventlog_spark.convert import convert
from tests.conformance.event_logs import NAMES, LogTable, installed
from tests.support.converting import elements_of, outcomes_of
from tests.support.servers_kafka import consumed, stand_in

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    found = installed(sqlite)
    found.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    found.run("INSERT INTO usr VALUES (1, 'Jack')")
    return found


def follow(log: LogTable, out: Path | str, *words: str, until_empty: bool = True) -> int:
    ending = ["--until-empty"] if until_empty else []
    return exit_code(["convert", "follow", str(log.engine.url), *ending, "--out", str(out), *words])


def batches(out: Path) -> list[str]:
    return sorted(entry.name for entry in out.iterdir() if entry.name.startswith("batch-"))


@pytest.mark.in_turn
def test_a_log_is_followed_and_gone_on_with(log: LogTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    log.write_all(range(1, 6))
    log.write(6, event_type=6, column_name=None, new_value=None)
    assert follow(log, out) == 0
    log.write(7, event_type=9)
    assert follow(log, out, "--strict", "--json") == 65
    assert follow(log, out) == 0
    assert batches(out) == ["batch-00000000", "batch-00000001"]
    assert [row["position"] for name in batches(out) for row in outcomes_of(out / name)] == [*range(1, 8)]
    assert 'event-id="6"' in elements_of(out / "batch-00000000")
    assert "Jack" in elements_of(out / "batch-00000000")
    assert not any((out / "_rows").iterdir())
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("batch-00000000: 6 rows, ")
    assert json.loads(second) | {"batch": "batch-00000001", "statuses": {"E": 1}} == json.loads(second)


@pytest.mark.in_turn
def test_numbers_go_on_transactions_are_told_and_rows_that_are_held_wait(log: LogTable, tmp_path: Path) -> None:
    out, outcomes = tmp_path / "out", Log(log.engine, NAMES)
    log.run("ALTER TABLE event_log ADD eventlog_transaction VARCHAR(20)")
    for number in range(1, 6):
        log.write(number, f"idu={number}", eventlog_transaction=f"{number // 3 + 70}")
    hold(outcomes, [(2, 2), (5, 5)])
    assert follow(log, out, "--to", "change-tables") == 0
    release(outcomes, [(2, 2)])
    log.write(6, "idu=6", eventlog_transaction="72")
    assert follow(log, out, "--to", "change-tables") == 0
    told = [
        [
            (row["idu"], int(row["header__transaction_id"][:2], 16), row["header__change_seq"])
            for row in rows_of(out / name)
        ]
        for name in batches(out)
    ]
    assert [[(idu, transaction) for idu, transaction, _ in batch] for batch in told] == [
        [(1, 70), (3, 71), (4, 71)],
        [(2, 70), (6, 72)],
    ]
    numbers = [number for batch in told for *_, number in batch]
    assert [int(number[16:]) for number in numbers] == [1, 2, 3, 4, 5]
    assert numbers == sorted(numbers)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of the one change table of a batch."""
    [file] = folder.rglob("usr__ct/part-*.parquet")
    return list(parquet.ParquetFile(file).read().to_pylist())


@pytest.mark.in_turn
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_batch_that_is_repeated_has_the_same_rows_and_bytes(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """It ends before its conversion, or between that and Spark's note; the log loses its rows meanwhile."""
    out = tmp_path / "out"
    calls: list[str] = []

    def dying(*told: object, **more: object) -> Summary:
        calls.append(moment)
        if moment == "after":
            convert(*told, **more)  # type: ignore[arg-type]  # what it was called with
            (out / "batch-00000000" / WORK).mkdir()
        raise SinkError("Somebody died.", may_pass=True)

    log.write_all(range(1, 6))
    monkeypatch.setattr(converting, "convert", dying)
    assert follow(log, out) == 75
    log.run("UPDATE event_log SET new_value = 'other'")
    before = elements_of(out / "batch-00000000") if moment == "after" else None
    monkeypatch.setattr(converting, "convert", convert)
    assert follow(log, out) == 0
    assert "other" not in elements_of(out / "batch-00000000")
    assert before in (None, elements_of(out / "batch-00000000"))
    assert calls == [moment]
    assert len(outcomes_of(out / "batch-00000000")) == 5
    assert not (out / "batch-00000000" / WORK).exists()


@pytest.mark.in_turn
def test_a_signal_ends_it_after_the_batch_in_hand(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    def interrupted(*told: object, **more: object) -> Summary:
        os.kill(os.getpid(), signal.SIGTERM)
        return convert(*told, **more)  # type: ignore[arg-type]  # what it was called with

    log.write_all(range(1, 4))
    monkeypatch.setattr(converting, "convert", interrupted)
    assert follow(log, out, until_empty=False) == 0
    assert batches(out) == ["batch-00000000"]
    assert len(outcomes_of(out / "batch-00000000")) == 3


def test_a_batch_that_fails_after_a_signal_is_told(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> Summary:
        os.kill(os.getpid(), signal.SIGTERM)
        raise SinkError("The disk is full.")

    log.write(1)
    monkeypatch.setattr(converting, "convert", interrupted)
    assert follow(log, tmp_path / "out", until_empty=False) == 75
    assert "The disk is full." in capsys.readouterr().err


@pytest.mark.in_turn
def test_a_second_command_is_kept_out_and_others_cannot_read_rows(
    log: LogTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.write(1)
    out = tmp_path / "out"
    assert follow(log, out) == 0
    assert [stat.S_IMODE(place.stat().st_mode) for place in (out, out / "_rows")] == [0o700, 0o700]
    first = Claim(out / "_lock")
    assert first.take()
    assert follow(log, out) == 75
    assert f"Another command or stream writes into {out}." in capsys.readouterr().err
    first.leave()
    assert follow(log, out) == 0


@pytest.mark.in_turn
def test_an_address_gets_the_same(log: LogTable, tmp_path: Path) -> None:
    log.write_all(range(1, 6))
    assert follow(log, tmp_path / "folder") == 0
    assert follow(log, f"file:{tmp_path / 'address'}") == 0
    name = "batch-00000000/part-00000.xml"
    assert (tmp_path / "address" / name).read_bytes() == (tmp_path / "folder" / name).read_bytes()


@pytest.fixture(scope="module")
def kafka() -> Iterator[str]:
    with stand_in() as servers:
        yield servers


@pytest.mark.in_turn
def test_messages_go_to_kafka_once(log: LogTable, tmp_path: Path, kafka: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a batch that was sent before somebody died."""
    words = ("--to", "messages", "--kafka", kafka)

    def dying(*told: object, **more: object) -> Summary:
        convert(*told, **more)  # type: ignore[arg-type]  # what it was called with
        raise SinkError("Somebody died.", may_pass=True)

    for number in range(1, 4):
        log.write(number, f"idu={number}")
    monkeypatch.setattr(converting, "convert", dying)
    assert follow(log, tmp_path / "out", *words) == 75
    monkeypatch.setattr(converting, "convert", convert)
    log.write(4, "idu=4")
    assert follow(log, tmp_path / "out", *words) == 0
    assert batches(tmp_path / "out") == ["batch-00000000", "batch-00000001"]
    assert sorted(one.key or b"" for one in consumed(kafka, "usr")) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize(
    "words, said",
    [
        (
            ["a.parquet", "--until-empty"],
            "--until-empty is an option of `eventlog convert follow`; this is `eventlog convert",
        ),
        (["follow", "sqlite://", "--engine", "local"], "this is `eventlog convert follow`"),
        (
            ["follow", "sqlite://", "--mark"],
            "--mark is an option of `eventlog convert database`; this is `eventlog convert f",
        ),
    ],
)
def test_what_does_not_go_together_is_said(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["convert", *words, "--out", str(tmp_path / "out")]) == 64
    assert said in capsys.readouterr().err


@pytest.mark.in_turn
def test_a_folder_goes_on_with_its_own_log_alone(
    log: LogTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of another log it would pass over the rows whose numbers it has seen."""
    out = tmp_path / "out"
    out.mkdir()
    (out / "__log").write_text("the lo")  # a first run was killed while it noted whose log it follows
    log.write(1)
    assert follow(log, out) == 0
    own = Path(log.engine.url.database or "")
    there = tmp_path / "there"
    there.mkdir()
    moved = shutil.copy(own, there)
    by_its_name = ["convert", "follow", f"sqlite:///{own.name}", "--until-empty", "--out", str(out)]
    monkeypatch.chdir(there)
    assert exit_code(by_its_name) == 64
    said = capsys.readouterr().err
    assert f"sqlite:///{own}, and this is the log event_log of sqlite:///{moved}." in said
    log.write(2)
    monkeypatch.chdir(own.parent)
    assert exit_code(by_its_name) == 0
    assert [row["position"] for name in batches(out) for row in outcomes_of(out / name)] == [1, 2]


def test_a_folder_with_something_else_is_refused(
    log: LogTable, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    assert follow(log, tmp_path) == 64
    assert "is not empty. Choose another folder, or continue there with what wrote it." in capsys.readouterr().err
