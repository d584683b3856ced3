"""Where a publisher under attack writes to: each sink's part of the configuration, and what an independent reader finds there."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from sqlalchemy import Engine

from tests.hardening.ledger import outputs, stream
from tests.hardening.ledger.runs import target_beside
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

    style: str
    changes: int
    """Changes in a document. By name documents of one stand in the order of changes, also of those committed late."""

    def config(self) -> str:
        """Its part of the configuration."""

    def check(self, source: Engine) -> Store:
        """What stands there, once the log is accounted for."""


class Files(outputs.XdsFiles):
    """XDS documents in a folder."""

    changes = 1

    def __init__(self, folder: Path, style: str = "field") -> None:
        super().__init__(folder)
        self.style = style

    def check(self, source: Engine) -> Store:
        store, told = self.replayed()
        account_for_log(source, told)
        return store

    def replayed(self) -> tuple[Store, list[Told]]:
        """What the documents say, whatever the log has by now."""
        assert list(self.folder.rglob("*.part")) == []
        return replay_xds(path.read_bytes() for path in sorted(self.folder.glob("*.xml")))


class Receiver(stream.Receiver):
    """XDS documents sent to a receiver that is away now and then, and loses some answers."""

    style = "field-replace"
    changes = 3

    def check(self, source: Engine) -> Store:
        store, told = replay_xds(body for _, body in self.documents)
        account_for_log(source, told)
        return store


class ChangeTables(outputs.ChangeTables):
    """Change tables in a database; in another one where databases are files."""

    style = "row-back"
    changes = 3

    def __init__(self, source: Engine, folder: Path) -> None:
        super().__init__(target_beside(source, folder))

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return self.replayed()

    def replayed(self) -> Store:
        """What the change tables say, whatever the log has by now."""
        try:
            return replay_rows(change_tables(self._engine))
        finally:
            self._engine.dispose()


class Kafka(stream.KafkaMessages):
    """Messages in topics of their own."""

    style = "row-back"
    changes = 3

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        found = {table: self.values(table) for table in KEYS}
        self._consumer.close()
        # A stand-in shows what was never committed, and a consumer then has to recognise repeats.
        return replay_rows(messages(found, once=self.real))


class Several:
    """XDS documents in a folder and change tables in a database, by one publisher."""

    style = "row-back"
    changes = 1

    def __init__(self, source: Engine, folder: Path) -> None:
        self.files, self.tables = Files(folder, self.style), ChangeTables(source, folder)

    def config(self) -> str:
        return f"{self.files.config()}[[output]]\n{self.tables.config()}"

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

    style = "row-back"
    changes = 3

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "changes"

    def config(self) -> str:
        return f'sink = "files"\nformat = "change-tables"\npath = "{self.folder}"\n'

    def check(self, source: Engine) -> Store:
        account_for_log(source, None)
        return replay_rows(change_files(self.folder))


class Everywhere:
    """All outputs between which nobody judges, by one publisher."""

    style = "row-back"
    changes = 1

    def __init__(self, source: Engine, folder: Path, servers: str) -> None:
        kafka = Kafka(servers, real=False)
        self._all: list[Target] = [Files(folder, self.style), ChangeFiles(folder), ChangeTables(source, folder), kafka]

    def config(self) -> str:
        first, *others = [one.config() for one in reversed(self._all)]
        return "\n[[output]]\n".join([first, *others])

    def check(self, source: Engine) -> Store:
        store, *others = [one.check(source) for one in self._all]
        assert [one for one in others if one != store] == []
        return store
