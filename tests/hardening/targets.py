"""Where a publisher under attack writes to: each sink's part of the configuration, and what an independent reader finds there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine, create_engine, make_url

from tests.hardening.ledger import stream
from tests.hardening.replaying import (
    KEYS,
    Store,
    Told,
    account_for_log,
    change_files,
    change_tables,
    messages,
    replay_rows,
    replay_xds,
)


class Target(Protocol):
    """A sink under attack."""

    sink: str
    style: str
    changes: int
    """Changes in a document. By name documents of one stand in the order of changes, also of those committed late."""

    def output(self) -> str:
        """Its part of the configuration."""

    def check(self, source: Engine) -> Store:
        """What stands there, once the log is accounted for."""


class Files:
    """XDS documents in a folder."""

    sink = "files"
    changes = 1

    def __init__(self, folder: Path, style: str = "field") -> None:
        self.folder, self.style = folder / "out", style

    def output(self) -> str:
        return f'sink = "files"\npath = "{self.folder}"\n'

    def check(self, source: Engine) -> Store:
        store, told = self.replayed()
        account_for_log(source, told)
        return store

    def replayed(self) -> tuple[Store, list[Told]]:
        """What the documents say, whatever the log has by now."""
        assert list(self.folder.rglob("*.part")) == []
        return replay_xds(path.read_bytes() for path in sorted(self.folder.glob("*.xml")))


class Receiver:
    """XDS documents sent to a receiver that is away now and then, and loses some answers."""

    sink = "http"
    style = "field-replace"
    changes = 3

    def __init__(self, found: stream.Receiver, connections: int = 1) -> None:
        self.found, self.port, self.connections = found, found.port, connections

    def through(self, port: int) -> None:
        """Lets the publisher send through this port of a proxy."""
        self.port = port

    def output(self) -> str:
        return f'sink = "http"\nurl = "http://127.0.0.1:{self.port}/"\nconnections = {self.connections}\n'

    def check(self, source: Engine) -> Store:
        store, told = replay_xds(body for _, body in self.found.documents)
        account_for_log(source, told)
        return store


class ChangeTables:
    """Change tables in a database; in another one where databases are files."""

    sink = "database"
    style = "row-back"
    changes = 3

    def __init__(self, source: Engine, folder: Path) -> None:
        self.url = source.url.render_as_string(hide_password=False)
        if source.dialect.name == "sqlite":
            self.url = f"sqlite:///{folder / 'target.db'}"
            with closing(sqlite3.connect(folder / "target.db")) as connection:
                connection.execute("PRAGMA journal_mode=wal")
        self.address = self.url

    def through(self, port: int) -> None:
        """Lets the publisher write through this port of a proxy."""
        self.address = make_url(self.url).set(host="127.0.0.1", port=port).render_as_string(hide_password=False)

    def output(self) -> str:
        return f'sink = "database"\nformat = "change-tables"\nurl = "{self.address}"\n'

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return self.replayed()

    def replayed(self) -> Store:
        """What the change tables say, whatever the log has by now."""
        engine = create_engine(self.url)
        try:
            return replay_rows(change_tables(engine))
        finally:
            engine.dispose()


class Kafka:
    """Messages in topics of their own."""

    sink = "kafka"
    style = "row-back"
    changes = 3

    def __init__(self, servers: str, name: str, *, real: bool) -> None:
        self.servers, self.name, self.real = servers, name, real

    def output(self) -> str:
        return (
            f'sink = "kafka"\nservers = "{self.servers}"\ntransactional_id = "{self.name}"\ntimeout = 10.0\n'
            f'create_topics = true\nreplication = 1\nmarks_topic = "{self.name}.marks"\n'
            f'[output.messages]\ntopic = "{self.name}.{{table}}"\n'
        )

    def check(self, source: Engine) -> Store:
        from tests.support.servers_kafka import consumed

        account_for_log(source, None)
        found = {table: [one.value for one in consumed(self.servers, f"{self.name}.{table}")] for table in KEYS}
        # A stand-in shows what was never committed, and a consumer then has to recognise repeats.
        return replay_rows(messages(found, once=self.real))


class Several:
    """XDS documents in a folder and change tables in a database, by one publisher."""

    sink = "files"
    style = "row-back"
    changes = 1

    def __init__(self, source: Engine, folder: Path) -> None:
        self.files, self.tables = Files(folder, self.style), ChangeTables(source, folder)

    def output(self) -> str:
        return f"{self.files.output()}[[output]]\n{self.tables.output()}"

    def check(self, source: Engine) -> Store:
        store = self.files.check(source)
        assert self.tables.check(source) == store
        return store

    def replayed(self) -> Store:
        """What both say, whatever the log has by now."""
        store, _ = self.files.replayed()
        assert self.tables.replayed() == store
        return store


class ChangeFiles:
    """Change tables as files in a folder."""

    sink = "files"
    style = "row-back"
    changes = 3

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "changes"

    def output(self) -> str:
        return f'sink = "files"\nformat = "change-tables"\npath = "{self.folder}"\n'

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return replay_rows(change_files(self.folder))


class Everywhere:
    """All outputs between which nobody judges, by one publisher."""

    sink = "files"
    style = "row-back"
    changes = 1

    def __init__(self, source: Engine, folder: Path, servers: str, name: str) -> None:
        kafka = Kafka(servers, name, real=False)
        self._all: list[Target] = [Files(folder, self.style), ChangeFiles(folder), ChangeTables(source, folder), kafka]

    def output(self) -> str:
        first, *others = [one.output() for one in reversed(self._all)]
        return "\n[[output]]\n".join([first, *others])

    def check(self, source: Engine) -> Store:
        store, *others = [one.check(source) for one in self._all]
        assert [one for one in others if one != store] == []
        return store
