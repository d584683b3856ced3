"""The sink `inbox`: documents as rows of a table in an SQLite file, each of them once."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from eventlog.plugins import (
    Document,
    OccupiedError,
    Outcome,
    OutputKeys,
    Resolved,
    SinkCapabilities,
    SinkError,
    SinkPlugin,
    Tenure,
)

SCHEMA = """
    CREATE TABLE IF NOT EXISTS inbox (number INTEGER PRIMARY KEY, id TEXT, body BLOB);
    CREATE TABLE IF NOT EXISTS owner (epoch INTEGER, plan TEXT);
    INSERT INTO owner SELECT 0, '' WHERE NOT EXISTS (SELECT 1 FROM owner);
"""


class Inbox(OutputKeys, frozen=True, kw_only=True):
    """The keys of `[[output]]` with `sink = "inbox"`."""

    path: str


class InboxSink:
    capabilities = SinkCapabilities(resolves=True)

    def __init__(self, output: Inbox) -> None:
        self._path = output.path
        self._opened = ExitStack()

    def open(self, tenure: Tenure | None) -> None:
        self.close()
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._db = self._opened.enter_context(closing(connection))
        self._db.executescript(SCHEMA)
        self._epoch = tenure.epoch if tenure else self._owner()[0]
        with self._transaction():
            self._db.execute("UPDATE owner SET epoch = ?", (self._epoch,))

    def last(self) -> str:
        return str(self._db.execute("SELECT coalesce(max(id), '') FROM inbox").fetchone()[0])

    def resolve(self, plan: str) -> Resolved:
        last = self._owner()[1]
        return Resolved(last=last, documents=None if plan and plan == last else frozenset())

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """A transaction shows nothing before its end, so there is nothing to prepare."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        with self._transaction():
            if plan and plan == self._owner()[1]:
                return ()
            rows = [(document.id, document.body) for document in documents]
            self._db.executemany("INSERT INTO inbox (id, body) VALUES (?, ?)", rows)
            self._db.execute("UPDATE owner SET plan = coalesce(nullif(?, ''), plan)", (plan,))
        return ()

    def close(self) -> None:
        self._opened.close()

    def _owner(self) -> tuple[int, str]:
        epoch, plan = self._db.execute("SELECT epoch, plan FROM owner").fetchone()
        return epoch, plan

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._db:
                self._db.execute("BEGIN IMMEDIATE")
                if self._owner()[0] > self._epoch:
                    raise OccupiedError("Another publisher writes to the inbox.")
                yield
        except sqlite3.Error as error:
            raise SinkError(f"The inbox does not take documents: {error}.", hint="It is tried again.") from error


INBOX = SinkPlugin(
    settings=Inbox,
    build=lambda order: InboxSink(order.output),
    place=lambda output: f"inbox {output.path}",
)
