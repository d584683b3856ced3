"""Conversions that send: into a database and to Kafka, in order, each change once, and what is refused there is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.convert import plan, to_change_tables
from eventlog.convert.commit import Destination, Summary
from eventlog.convert.local import convert
from eventlog.convert.settings import Conversion, FilesInput, LogInput, MessageFiles, SentMessages, SentTables
from eventlog.core.errors import SinkError, UsageError
from eventlog.core.model import Document, Outcome
from eventlog.core.schema import Catalog, Column, Table
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from eventlog.sql.reflect import reflect
from tests.conformance.event_logs import installed
from tests.support.converting import converted, log_row, outcomes_of, write_lines
from tests.support.servers_kafka import Found, consumed, settings, stand_in

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(8)"),
        Column(name="age", type="integer"),
    ),
)
CATALOG = Catalog([USR])
PLAIN = MessageSettings(topic="{table}", batch_size=5, tombstones=True)


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "BUCKET_ROWS", 4)
    monkeypatch.setattr(plan, "RANGE_ROWS", 4)
    monkeypatch.setattr(to_change_tables, "DOCUMENT_ROWS", 5)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Twenty objects come, and one of them goes."""
    rows = [log_row(n, table_key=f"idu={n}", new_value=f"n{n}") for n in range(1, 21)]
    rows.append(log_row(21, event_type=4, table_key="idu=3", column_name=None, new_value=None))
    return write_lines(tmp_path / "log.jsonl", rows)


def into(path: Path, **chosen: Any) -> SentTables:
    return SentTables(into=DatabaseSettings(url=f"sqlite:///{path}", **chosen))


def run(source: Path, out: Path, target: SentTables | SentMessages, *, jobs: int = 1, **chosen: Any) -> Summary:
    found = FilesInput(places=(str(source),))
    return convert(Conversion(input=found, destination=out, catalog=CATALOG, format=target, **chosen), jobs=jobs)


def rows(path: Path) -> list[tuple[Any, ...]]:
    import sqlite3

    with sqlite3.connect(path) as connection:
        found = connection.execute(
            "SELECT header__change_seq, header__change_oper, idu, fname FROM usr__ct ORDER BY 1"
        ).fetchall()
    connection.close()
    return found


EXPECTED = [("I", n, f"n{n}") for n in range(1, 21)] + [("D", 3, None)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_rows_are_in_the_database_in_their_order(source: Path, tmp_path: Path, jobs: int) -> None:
    done = run(source, tmp_path / "out", into(tmp_path / "t.db"), jobs=jobs)
    assert (done.changes, done.parts, done.statuses) == (21, 5, {"S": 21})
    assert [row[1:] for row in rows(tmp_path / "t.db")] == EXPECTED
    assert [int(row[0][16:]) for row in rows(tmp_path / "t.db")] == list(range(1, 22))
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["_SUCCESS", "outcomes.parquet"]


def failing(after: int, *, taken: bool) -> Callable[[DatabaseSink, str, Sequence[Document]], Sequence[Outcome]]:
    """Make a commit for a database lost after some documents, before or after it has taken the next."""
    left = iter(range(after))

    def commit(sink: DatabaseSink, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        alive = next(left, None) is not None
        outcomes = COMMIT(sink, plan, documents) if alive or taken else []
        if not alive:
            raise SinkError("The database is away.")
        return outcomes

    return commit


COMMIT = DatabaseSink.commit


@pytest.mark.parametrize("taken", [False, True])
@pytest.mark.parametrize("after", [0, 2, 4])
def test_an_interrupted_conversion_goes_on_and_nothing_is_there_twice(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int, taken: bool
) -> None:
    target = into(tmp_path / "t.db")
    run(source, tmp_path / "former", target)
    with monkeypatch.context() as patch:
        patch.setattr(DatabaseSink, "commit", failing(after, taken=taken))
        with pytest.raises(SinkError, match=r"is away\. Give the same command once more"):
            run(source, tmp_path / "out", target)
    with pytest.raises(UsageError, match="interrupted while it was sent"):
        run(source, tmp_path / "out", target, part_events=7)
    done = run(source, tmp_path / "out", target)
    assert (done.changes, done.statuses) == (21, {"S": 21})
    assert [row[1:] for row in rows(tmp_path / "t.db")] == EXPECTED * 2
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == ["_SUCCESS", "outcomes.parquet"]


def test_a_conversion_of_a_log_goes_on_although_a_table_was_altered(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = installed(sqlite)
    log.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(64))")
    for number in range(1, 21):
        log.write(number, f"idu={number}", event_type=1, new_value=f"n{number}")
    url = str(sqlite.url)

    def run() -> Summary:
        source = LogInput(url=url)
        target, out = into(tmp_path / "t.db"), tmp_path / "out"
        return convert(
            Conversion(input=source, destination=out, catalog=reflect(sqlite, ["usr"]), format=target), jobs=1
        )

    with monkeypatch.context() as patch:
        patch.setattr(DatabaseSink, "commit", failing(2, taken=False))
        with pytest.raises(SinkError, match="is away"):
            run()
    log.run("ALTER TABLE usr ADD COLUMN age INTEGER")
    assert run().statuses == {"S": 20}
    assert [row[1:] for row in rows(tmp_path / "t.db")] == EXPECTED[:20]


def test_a_database_that_does_not_answer_is_noticed_before_anything_is_done(source: Path, tmp_path: Path) -> None:
    target = SentTables(into=DatabaseSettings(url="postgresql+psycopg://u@127.0.0.1:1/x"))
    with pytest.raises(SinkError, match="Nothing was done yet"):
        run(source, tmp_path / "out", target)
    assert not (tmp_path / "out").exists()


def test_a_second_start_does_not_ask_the_receiver(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Kafka would shut out the one that is at work."""
    asked: list[object] = []
    monkeypatch.setattr(DatabaseSink, "open", asked.append)
    with (
        Destination(tmp_path / "out").occupy(overwrite=False),
        pytest.raises(SinkError, match="Another conversion is writing"),
    ):
        run(source, tmp_path / "out", into(tmp_path / "t.db"))
    assert asked == []


def test_who_goes_on_notices_that_others_wrote_meanwhile(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DatabaseSink, "commit", failing(2, taken=False))
        with pytest.raises(SinkError, match="is away"):
            run(source, tmp_path / "out", into(tmp_path / "t.db"))
    other = write_lines(tmp_path / "other.jsonl", [log_row(1, table_key="idu=99")])
    run(other, tmp_path / "other", into(tmp_path / "t.db"))
    with pytest.raises(SinkError, match="Something else was written there"):
        run(source, tmp_path / "out", into(tmp_path / "t.db"))


def test_rows_that_the_database_refuses_are_errors(postgresql: Engine, tmp_path: Path) -> None:
    told = [log_row(n, table_key=f"idu={n}", new_value="much too long" if n in (2, 5) else "x") for n in range(1, 9)]
    source = write_lines(tmp_path / "log.jsonl", told)
    url = postgresql.url.render_as_string(hide_password=False)
    done = run(source, tmp_path / "out", SentTables(into=DatabaseSettings(url=url)))
    assert (done.statuses, done.outcomes) == ({"E": 2, "S": 6}, {"E refused": 2, "S published": 6})
    outcomes = outcomes_of(tmp_path / "out")
    assert [(one["position"], one["reason"]) for one in outcomes if one["status"] == "E"] == [
        (2, "refused"),
        (5, "refused"),
    ]
    assert all("usr__ct" in one["note"] for one in outcomes if one["status"] == "E")
    with postgresql.connect() as connection:
        found = connection.execute(text("SELECT idu FROM usr__ct ORDER BY header__change_seq")).scalars().all()
    assert found == [1, 3, 4, 6, 7, 8]


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with stand_in() as found:
        yield found


def test_messages_are_those_of_the_files_and_have_keys(source: Path, tmp_path: Path, servers: str) -> None:
    target = SentMessages(settings=PLAIN, into=settings(servers))
    done = run(source, tmp_path / "out", target)
    assert (done.changes, done.parts, done.statuses) == (21, 5, {"S": 21})
    converted(source, tmp_path / "files", catalog=CATALOG, target=MessageFiles(settings=PLAIN), part_events=100)
    found = in_order(consumed(servers, "usr"))
    assert [one.value for one in found if one.value is not None] == (
        tmp_path / "files" / "usr" / "part-00000.jsonl"
    ).read_bytes().splitlines()
    assert [one.key for one in found] == [str(n).encode() for n in [3, *range(1, 21), 3]]
    assert found[0].value is None


def in_order(found: list[Found]) -> list[Found]:
    """Sort by change numbers across partitions; messages without one come first."""
    return sorted(found, key=lambda one: json.loads(one.value)["headers"]["changeSequence"] if one.value else "")
