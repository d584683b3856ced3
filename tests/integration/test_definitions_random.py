"""Random DDL between random writes, rows waiting, the publisher up or down: every change is told as it was, none is an error,
and a mirror that is built from what is told equals the table at the end.
"""

from __future__ import annotations

import os
import random
from itertools import groupby
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.install import install, uninstall
from eventlog.sql.triggers import Style, TriggerOptions, track
from tests.support.ddl_histories import ChangeFiles, Fact, MessageFiles, Work, XdsMirror
from tests.support.logged import run

STEPS = 24


def publisher_of(engine: Engine, folder: Path) -> Publisher:
    outputs = [
        FilesOutput(name="messages", path=str(folder / "messages"), format="messages"),
        FilesOutput(name="xds", path=str(folder / "xds"), format="xds"),
        FilesOutput(name="tables", path=str(folder / "tables"), format="change-tables"),
    ]
    config = Config(
        source=SourceConfig(url=engine.url.render_as_string(hide_password=False), user="nobody"),
        publisher=PublisherConfig(wake_up=False, polling_interval=1, batch_size=16),
        output=tuple(outputs),
    )
    return Publisher(config, engine=engine)


def publish(engine: Engine, folder: Path) -> None:
    with publisher_of(engine, folder) as publisher:
        for _ in publisher.rounds(until_empty=True):
            pass


def history(engine: Engine, folder: Path, seed: int, style: Style) -> str:
    """One history; tells what its table is called at the end."""
    follows = engine.dialect.name == "postgresql"
    work = Work(engine, seed, TriggerOptions(style=style, follow_ddl=follows))
    rng = random.Random(seed + 1)
    sources: list[MessageFiles | ChangeFiles] = [MessageFiles(folder / "messages"), ChangeFiles(folder / "tables")]
    mirror = XdsMirror(folder / "xds")
    facts: list[list[Fact]] = [[] for _ in sources]
    up = rng.random() < 0.5
    for _ in range(STEPS):
        if rng.random() < 0.25:
            work.alter()
        else:
            work.write()
        if up and rng.random() < 0.3:
            work.settle()
            publish(engine, folder)
            for found, source in zip(facts, sources, strict=True):
                found.extend(source.facts())
            mirror.apply(work)
        if rng.random() < 0.1:
            up = not up
    work.settle()
    publish(engine, folder)
    for found, source in zip(facts, sources, strict=True):
        found.extend(source.facts())
    mirror.apply(work)
    where = f"seed {seed}\n" + "\n".join(work.said)
    query = (
        "SELECT l.record_id, l.status, o.note FROM event_log l LEFT JOIN event_log_outcome o"
        " ON o.record_id = l.record_id WHERE l.status NOT IN ('S', 'W')"
    )
    with engine.connect() as connection:
        assert connection.execute(text(query)).all() == [], where
    assert work.stored() == work.modelled(), where
    assert mirror.shown(work) == work.modelled(), where
    if style is Style.IMAGE:
        for found in facts:
            for key in {one.key for one in work.facts}:
                assert [one for one in found if one.key == key] == [one for one in work.facts if one.key == key], where
    return work.table


@pytest.mark.parametrize(
    "database, style",
    [
        ("postgresql", Style.IMAGE),
        ("postgresql", Style.ROW_BACK),
        ("mariadb", Style.IMAGE),
        ("sqlite", Style.FIELD),
    ],
)
def test_every_change_is_told_as_it_was(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style
) -> None:
    assert histories(request.getfixturevalue(database), tmp_path, style, 1) == 1


@pytest.mark.long
@pytest.mark.parametrize("style", [Style.IMAGE, Style.FIELD, Style.FIELD_BACK, Style.ROW_BACK])
@pytest.mark.parametrize("database", ["postgresql", "mariadb", "sqlite"])
def test_many_histories(request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style) -> None:
    if style is Style.FIELD_BACK and database != "postgresql":
        pytest.skip("nobody knows there what a column is called that would be read back")
    count = int(os.environ.get("EVENTLOG_HISTORIES", "12"))
    assert histories(request.getfixturevalue(database), tmp_path, style, count) == count


def histories(engine: Engine, folder: Path, style: Style, count: int) -> int:
    """So many histories, each in a log of its own; how many there were."""
    done = 0
    while done < count:
        seed = int(os.environ.get("EVENTLOG_SEED") or random.SystemRandom().randrange(10**6))
        install(engine)
        last = history(engine, folder / str(seed), seed, style)
        uninstall(engine, purge=True)
        run(engine, f"DROP TABLE {last}")
        done += 1
    return done


class LiveWriter(Thread):
    """Writes to one row all the time, whatever happens to the other columns."""

    def __init__(self, engine: Engine, key: int, ended: Event) -> None:
        super().__init__(daemon=True)
        self.engine, self.key, self.ended = engine, key, ended
        self.errors: list[str] = []

    def run(self) -> None:
        count = 0
        while not self.ended.is_set():
            count += 1
            try:
                run(self.engine, f"UPDATE usr SET kept = 'v{count}' WHERE idu = {self.key}")
            except DBAPIError as error:
                self.errors.append(str(error))


@pytest.mark.in_turn
def test_a_definition_begins_with_the_first_row_of_its_triggers(postgresql: Engine, tmp_path: Path) -> None:
    """Three writers and a publisher at work, while columns come, go and get other names."""
    install(postgresql)
    run(postgresql, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, kept TEXT, a0 TEXT)")
    run(postgresql, "INSERT INTO usr VALUES (1), (2), (3)")
    track(postgresql, ["usr"], TriggerOptions(style=Style.IMAGE, follow_ddl=True))
    ended = Event()
    writers = [LiveWriter(postgresql, key, ended) for key in (1, 2, 3)]
    for writer in writers:
        writer.start()
    shapes = [["idu", "kept", "a0"]]
    with publisher_of(postgresql, tmp_path) as publisher:
        for number in range(1, 9):
            *_, last = shapes[-1]
            statement, shape = random.choice(
                [
                    (f"ADD COLUMN a{number} TEXT", [*shapes[-1], f"a{number}"]),
                    (f"RENAME COLUMN {last} TO a{number}", [*shapes[-1][:-1], f"a{number}"]),
                    (f"DROP COLUMN {last}", shapes[-1][:-1]),
                ][: 3 if len(shapes[-1]) > 3 else 2]
            )
            run(postgresql, f"ALTER TABLE usr {statement}")
            shapes.append(shape)
            publisher.run_once()
        ended.set()
        for writer in writers:
            writer.join()
        for _ in publisher.rounds(until_empty=True):
            pass
    assert [writer.errors for writer in writers] == [[], [], []]
    with postgresql.connect() as connection:
        assert set(connection.execute(text("SELECT status FROM event_log")).scalars()) == {"S"}
    told = [[*(one.after or {})] for one in MessageFiles(tmp_path / "messages").facts()]
    seen = [names for names, _ in groupby(told)]
    expected = iter(shapes)
    assert all(names in expected for names in seen), (seen, shapes)
