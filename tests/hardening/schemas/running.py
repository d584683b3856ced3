"""A run: a schema tracked with a style, random work on it, the publisher between, and its documents against the tables."""

from __future__ import annotations

import random
from pathlib import Path

from sqlalchemy import Engine, text

from eventlog.config.settings import Config, FilesOutput, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sql.install import install
from eventlog.sql.triggers import Style, TriggerOptions, track
from tests.hardening.schemas.replaying import Replayer, Store, expected
from tests.hardening.schemas.shapes import schema
from tests.hardening.schemas.working import Session, looked_at

SESSIONS = {"postgresql": 3}
"""Who works at the same time; elsewhere one, for others would wait for its locks, in the one thread that there is."""

VALUED = (Style.FIELD, Style.FIELD_REPLACE)


class Run:
    """One schema in one database, tracked whole. `remarks` is what `track` said of it."""

    def __init__(self, engine: Engine, folder: Path, style: Style, seed: int) -> None:
        self.engine, self.folder = engine, folder
        _run(engine, *schema(engine.dialect.name))
        install(engine)
        self.tables = looked_at(engine)
        names = [one.name for one in self.tables if one.shape.key]
        self.remarks: list[str] = []
        track(engine, names, TriggerOptions(style=style), note=self.remarks.append)
        several = {f"{one.name}.{column}" for one in self.tables if not one.shape.key for column in one.kinds}
        self.replayer = Replayer(strict=style in VALUED, several=frozenset(several))
        self.dice = random.Random(seed)
        # Who gives a key away while another one takes it, both waiting for their end to have it looked at, is known to no
        # trigger; so one session alone works with such keys.
        others = [one for one in self.tables if not one.deferrable]
        count = SESSIONS.get(engine.dialect.name, 1)
        self.sessions = [Session(engine, others if one else self.tables, seed * 100 + one) for one in range(count)]
        self.config = Config(
            source=SourceConfig(url=engine.url.render_as_string(hide_password=False)),
            publisher=PublisherConfig(allow_loopback=True, time_syntax=3, enable_refs=False, batch_size=16),
            output=(FilesOutput(path=str(folder)),),
        )
        self._taken: set[str] = set()
        for session in self.sessions:
            session.fill()

    def round(self, steps: int) -> list[str]:
        """Some work, at times with documents while transactions are open; then all of it is told. Tells what is not so."""
        for session in self.sessions:
            session.done.clear()
        for _ in range(steps):
            self.dice.choice(self.sessions).step()
        if self.dice.random() < 0.3 and self.engine.dialect.name != "sqlite":  # where a writer keeps all others out
            self.publish()
        for session in self.sessions:
            session.end(commit=True)
        self.publish()
        return self.faults()

    def publish(self) -> None:
        """Publishes what is there to be published, and gives the documents to the replayer."""
        with Publisher(self.config) as publisher:
            for _ in publisher.rounds(until_empty=True):
                pass
        new = sorted(one for one in self.folder.glob("*.xml") if one.name not in self._taken)
        self._taken.update(one.name for one in new)
        self.replayer.take(one.read_bytes() for one in new)

    def faults(self) -> list[str]:
        """Where the receiver has not what the tables have, what it was told that could not be, and what was refused."""
        refused = self._ask(
            "SELECT record_id, status, table_name, table_key FROM event_log WHERE status NOT IN ('S', 'W')"
        )
        found, held = expected(self.engine, [one.shape for one in self.tables]), self.replayer.filled()
        faults = [*(f"refused: {row}" for row in refused), *self.replayer.wrong, *different(found, held)]
        return [*faults[:8], self.story()] if faults else []

    def story(self) -> str:
        """What the sessions did in this round, one after the other, and what the log has of it."""
        parts = [f"-- session {number}\n" + "\n".join(one.done) for number, one in enumerate(self.sessions)]
        return "\n".join([*parts, "-- log", *map(str, self._log())])

    def _log(self) -> list[tuple[object, ...]]:
        columns = "record_id, status, event_type, table_name, table_key, column_name, old_value, new_value"
        return self._ask(f"SELECT {columns} FROM event_log ORDER BY record_id")[-150:]

    def _ask(self, query: str) -> list[tuple[object, ...]]:
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query))]


def different(found: Store, held: Store) -> list[str]:
    """How tables and receiver differ, object by object."""
    lines = []
    for place in sorted(found.keys() | held.keys()):
        tables, receiver = found.get(place), held.get(place)
        if tables != receiver:
            lines.append(f"{place}: tables {tables}, receiver {receiver}")
    return lines


def _run(engine: Engine, *statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))
