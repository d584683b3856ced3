"""Where a publisher under attack writes to: each sink's part of the configuration, and what an independent reader finds there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine, create_engine

from tests.hardening.replaying import (
    KEYS,
    Store,
    account_for_log,
    change_files,
    change_tables,
    messages,
    replay_rows,
    replay_xds,
)
from tests.support.servers_kafka import consumed


class Target(Protocol):
    """A sink under attack."""

    style: str
    changes: int
    """Changes in a document. By name documents of one stand in the order of changes, also of those committed late."""

    def output(self) -> str:
        """Its part of the configuration."""

    def check(self, source: Engine) -> Store:
        """What stands there, once the log is accounted for."""


class Files:
    """XDS documents in a folder."""

    changes = 1

    def __init__(self, folder: Path, style: str = "field") -> None:
        self.folder, self.style = folder / "out", style

    def output(self) -> str:
        return f'sink = "files"\npath = "{self.folder}"\n'

    def check(self, source: Engine) -> Store:
        assert list(self.folder.rglob("*.part")) == []
        store, told = replay_xds(path.read_bytes() for path in sorted(self.folder.glob("*.xml")))
        account_for_log(source, told)
        return store

    def replayed(self) -> Store:
        """What stands there, whatever the log has by now."""
        return replay_xds(path.read_bytes() for path in sorted(self.folder.glob("*.xml")))[0]


class Rows:
    """Rows of whole images."""

    style = "row-back"
    changes = 3

    def output(self) -> str:
        raise NotImplementedError

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return self.replayed()

    def replayed(self) -> Store:
        raise NotImplementedError


class ChangeTables(Rows):
    """Change tables in a database; in another one where databases are files."""

    def __init__(self, source: Engine, folder: Path) -> None:
        self.url = source.url.render_as_string(hide_password=False)
        if source.dialect.name == "sqlite":
            self.url = f"sqlite:///{folder / 'target.db'}"
            with closing(sqlite3.connect(folder / "target.db")) as connection:
                connection.execute("PRAGMA journal_mode=wal")

    def output(self) -> str:
        return f'sink = "database"\nformat = "change-tables"\nurl = "{self.url}"\n'

    def replayed(self) -> Store:
        engine = create_engine(self.url)
        try:
            return replay_rows(change_tables(engine))
        finally:
            engine.dispose()


class ChangeFiles(Rows):
    """Change tables as files in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "changes"

    def output(self) -> str:
        return f'sink = "files"\nformat = "change-tables"\npath = "{self.folder}"\n'

    def replayed(self) -> Store:
        return replay_rows(change_files(self.folder))


class Kafka(Rows):
    """Messages in topics of their own, of a stand-in, which shows what was never committed."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name = servers, name

    def output(self) -> str:
        return (
            f'sink = "kafka"\nservers = "{self.servers}"\ntransactional_id = "{self.name}"\ntimeout = 10.0\n'
            f'create_topics = true\nreplication = 1\nmarks_topic = "{self.name}.marks"\n'
            f'[output.messages]\ntopic = "{self.name}.{{table}}"\n'
        )

    def replayed(self) -> Store:
        found = {table: [one.value for one in consumed(self.servers, f"{self.name}.{table}")] for table in KEYS}
        return replay_rows(messages(found))


class Several:
    """Several of them, by one publisher; one that has a table in its part of the configuration comes last."""

    style = "row-back"
    changes = 1

    def __init__(self, *targets: Files | Rows) -> None:
        self.targets = targets

    def output(self) -> str:
        return "\n[[output]]\n".join(one.output() for one in self.targets)

    def check(self, source: Engine) -> Store:
        return the_same([one.check(source) for one in self.targets])

    def replayed(self) -> Store:
        return the_same([one.replayed() for one in self.targets])


def the_same(stores: list[Store]) -> Store:
    """The store that all outputs have."""
    first, *others = stores
    assert [one for one in others if one != first] == []
    return first
