"""Each output tells a table's new shape, and its version, after the triggers of a table that changed were made anew."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.installed import history
from eventlog.capture.track import track
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.logged import USR, run
from tests.support.servers_kafka import consumed

Shapes = dict[int, set[str]]
"""The columns of each version that an output was told."""
Told = Callable[[], Shapes]

CHANGES: Sequence[tuple[str, str]] = (
    ("", "UPDATE usr SET fname = 'Joe' WHERE idu = 1"),
    ("ADD COLUMN mail VARCHAR(64)", "UPDATE usr SET mail = 'joe@example.net' WHERE idu = 1"),
    ("RENAME COLUMN lname TO surname", "UPDATE usr SET surname = 'Doe' WHERE idu = 1"),
    ("DROP COLUMN age", "UPDATE usr SET fname = 'Jim', mail = 'jim@example.net' WHERE idu = 1"),
)
"""How the table changes, and what is written to it then."""
SHAPES: Shapes = {
    1: {"idu", "fname", "lname", "age"},
    2: {"idu", "fname", "lname", "age", "mail"},
    3: {"idu", "fname", "surname", "age", "mail"},
    4: {"idu", "fname", "surname", "mail"},
}


def message_files(request: pytest.FixtureRequest, folder: Path) -> tuple[OutputConfig, Told]:
    output = FilesOutput(path=str(folder), format="messages", messages=MessageSettings(mode="metadata"))

    def told() -> Shapes:
        lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
        messages = [json.loads(line) for line in lines]
        return metadata(one["value"] for one in messages if one["topic"] == "eventlog.metadata")

    return output, told


def kafka(request: pytest.FixtureRequest, folder: Path) -> tuple[OutputConfig, Told]:
    servers: str = request.getfixturevalue("mock_cluster")
    topic = f"follow.{folder.parent.name}"
    settings = MessageSettings(mode="metadata", metadata_topic=topic)
    output = KafkaOutput(servers=servers, transactional_id=topic, marks_topic=f"{topic}.marks", messages=settings)
    return output, lambda: metadata(json.loads(one.value or b"") for one in consumed(servers, topic))


def metadata(messages: Any) -> Shapes:
    """What metadata messages say."""
    return {
        one["message"]["lineage"]["tableVersion"]: set(one["message"]["tableStructure"]["tableColumns"])
        for one in messages
    }


def change_files(request: pytest.FixtureRequest, folder: Path) -> tuple[OutputConfig, Told]:
    def told() -> Shapes:
        described = [json.loads(path.read_text()) for path in folder.rglob("*.dfm")]
        return {
            one["dataInfo"]["tableVersion"]: {
                column["name"] for column in one["dataInfo"]["columns"] if not column["name"].startswith("header__")
            }
            for one in described
        }

    return FilesOutput(path=str(folder), format="change-tables", file_format="csv"), told


def change_tables(request: pytest.FixtureRequest, folder: Path) -> tuple[OutputConfig, Told]:
    """The DDL history of the target."""
    folder.mkdir()
    target = folder / "target.db"

    def told() -> Shapes:
        with sqlite3.connect(target) as connection:
            found = connection.execute("SELECT table_version, details FROM attrep_ddl_history ORDER BY table_version")
            return dict(applied(json.loads(details)["columns"] for _, details in found.fetchall()))

    return DatabaseOutput(url=f"sqlite:///{target}"), told


def applied(changes: Iterable[dict[str, dict[str, Any]]]) -> Iterator[tuple[int, set[str]]]:
    """The columns after each line of a DDL history, each with its version."""
    columns: set[str] = set()
    for version, change in enumerate(changes, 1):
        gone = {name for name, one in change.items() if one["action"] == "DROP"}
        columns = (columns | change.keys()) - gone
        yield version, {name for name in columns if not name.startswith("header__")}


WAYS = {
    "followed by the publisher": (True, False),
    "followed by the database": (False, True),
    "followed by both": (True, True),
}


@pytest.mark.in_turn
@pytest.mark.in_turn
@pytest.mark.parametrize("sink", [message_files, kafka, change_files, change_tables])
@pytest.mark.parametrize(
    "database, way",
    [
        *(("postgresql", way) for way in WAYS),
        ("mariadb", "followed by the publisher"),
        ("sqlite", "followed by the publisher"),
    ],
)
def test_outputs_tell_the_shape_of_a_table_that_was_followed(
    request: pytest.FixtureRequest, database: str, way: str, sink: Any, tmp_path: Path
) -> None:
    engine: Engine = request.getfixturevalue(database)
    by_publisher, by_database = WAYS[way]
    install(engine)
    run(engine, *USR, "INSERT INTO usr VALUES (1, 'Jack', 'Frost', 30)")
    track(engine, ["usr"], TriggerOptions(style=Style.FIELD, follow_ddl=by_database))
    output, told = sink(request, tmp_path / "out")
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody", tables=("usr",))
    settings = PublisherConfig(follow=by_publisher, wake_up=False)
    some = slice(3 if database == "sqlite" else 4)  # SQLite drops no column that a trigger names
    with Publisher(Config(source=source, publisher=settings, output=(output,)), engine=engine) as publisher:
        for change, write in CHANGES[some]:
            if change:
                run(engine, f"ALTER TABLE usr {change}")
            if by_database:  # nothing is lost, whenever the publisher looks
                run(engine, write)
                publisher.run_once()
            else:  # what is written before the next poll may not be seen
                poll(publisher)
                run(engine, write)
                poll(publisher)
    shapes = dict(list(SHAPES.items())[some])
    assert told() == shapes
    assert [one.version for one in history(engine, LogNames())] == list(shapes)


def poll(publisher: Publisher) -> None:
    """A cycle that looks at the tables, whatever the clock says."""
    publisher.post._next_look = 0.0  # the test does not wait for the clock
    publisher.run_once()


@pytest.mark.parametrize("database", ["postgresql", "mariadb", "sqlite"])
def test_a_new_column_is_read_back_from_the_next_poll_on(
    request: pytest.FixtureRequest, database: str, tmp_path: Path
) -> None:
    """Of rows that are read back nothing in the log names the column; on PostgreSQL it is there at once."""
    engine: Engine = request.getfixturevalue(database)
    install(engine)
    run(engine, *USR, "INSERT INTO usr VALUES (1, 'Jack', 'Frost', 30)")
    track(engine, ["usr"], TriggerOptions(style=Style.ROW_BACK))
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody", tables=("usr",))
    config = Config(
        source=source, publisher=PublisherConfig(follow=True, wake_up=False), output=(FilesOutput(path=str(tmp_path)),)
    )
    with Publisher(config, engine=engine) as publisher:
        run(engine, "UPDATE usr SET fname = 'Joe' WHERE idu = 1")
        publisher.run_once()
        run(engine, "ALTER TABLE usr ADD COLUMN mail VARCHAR(64)")
        if database != "postgresql":
            poll(publisher)
        run(engine, "UPDATE usr SET mail = 'joe@example.net' WHERE idu = 1")
        publisher.run_once()
    first, second = (path.read_text() for path in sorted(tmp_path.glob("*.xml")))
    assert "mail" not in first
    assert "joe@example.net" in second
