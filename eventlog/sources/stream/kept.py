"""Where the position of a stream is kept, and who may move it: a file that one process claims, or a table of a database.

In a database it is the lock of a log: a lease, checked in each transaction, so that who has been replaced changes nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

import sqlalchemy as sa
from sqlalchemy import Connection

from eventlog.core.errors import OccupiedError, SourceError
from eventlog.core.seams import Tenure
from eventlog.sources.log.lock import LogLock
from eventlog.sources.marks import EPOCH, LOG, Marks, next_epoch
from eventlog.sources.stream.claim import Claim
from eventlog.sources.stream.source import FileMarks, StreamMarks
from eventlog.sql.connect import connect, limit_sessions
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

NAME_CHARACTERS: Final = 200


class StreamKeeper(Protocol):
    """Who keeps a stream's position for one publisher at a time."""

    def take(self) -> Tenure | None:
        """Return our tenure, or None; raises OccupiedError once lost."""

    def confirm(self) -> None:
        """Raise OccupiedError if the tenure is lost, as far as known."""

    def marks(self) -> StreamMarks:
        """Read the marks again."""

    def leave(self) -> None:
        """Gives it to whoever waits."""

    def drop(self) -> None:
        """Lets go of it without a word to a database that may be away."""


class FileKeeper:
    """A file. The claim ends with the process and no sooner, so there is nobody to ask."""

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        # Not the file itself: it is replaced at each change, and the claim would stay with the old
        # one.
        self._claim = Claim(Path(f"{path}.lock"))
        self._tenure: Tenure | None = None

    def take(self) -> Tenure | None:
        """Take the claim; the stream's identity and the epoch are in its marks."""
        if self._tenure is None and self._claim.take():
            marks = self.marks()
            identity = marks.get(LOG) or str(uuid4())
            epoch = next_epoch(marks.get(EPOCH), dt.datetime.now(dt.UTC).replace(tzinfo=None))
            marks.change({LOG: identity, EPOCH: str(epoch)})
            self._tenure = Tenure(log=identity, name=self._name, epoch=epoch)
        return self._tenure

    def confirm(self) -> None:
        if self._tenure is None:
            raise OccupiedError(
                f"Another publisher may work on the {self._name}.", hint="This one does not have it any more."
            )

    def marks(self) -> FileMarks:
        return FileMarks(self._path)

    def leave(self) -> None:
        self._tenure = None
        self._claim.leave()

    def drop(self) -> None:
        self.leave()


class DatabaseMarks:
    """Marks in a table, which only the holder of its lock changes."""

    def __init__(self, log: Log, lock: LogLock) -> None:
        self.engine = log.engine
        self._log = log
        self._lock = lock

    def get(self, name: str) -> str | None:
        with self._log.transaction() as connection:
            return Marks(self._log).get(connection, name)

    def change(self, changes: Mapping[str, str | None]) -> None:
        with self._log.transaction() as connection:
            for name, value in changes.items():
                if value is None:
                    # `mark` checks the lock by itself, and taking a mark away does not.
                    self.assure(connection)
                    Marks(self._log).clear(connection, name)
                else:
                    self._lock.mark(connection, name, value)

    def assure(self, connection: Connection) -> None:
        """Raise OccupiedError if another has the lock; nobody takes it in the caller's transaction."""
        self._lock.assure(connection)


class DatabaseKeeper:
    """A table of marks in a database, whose names begin with `prefix`. `lease` is in seconds."""

    def __init__(self, url: str, prefix: str, lease: float, alive: Callable[[], bool] = lambda: True) -> None:
        self._engine = connect(url, may_create=True)
        limit_sessions(self._engine, None, None, lease)
        self._log = Log(self._engine, LogNames(table=prefix))
        self._lock = LogLock(self._log, lease, alive)
        self._made = False

    def take(self) -> Tenure | None:
        if not self._made:
            _make(self._log)
            self._made = True
        self._lock.take()
        return self._lock.tenure

    def confirm(self) -> None:
        self._lock.confirm_lease()

    def marks(self) -> DatabaseMarks:
        return DatabaseMarks(self._log, self._lock)

    def leave(self) -> None:
        self._lock.leave()
        self._engine.dispose()

    def drop(self) -> None:
        self._lock.drop()
        self._engine.dispose()


def _make(log: Log) -> None:
    types = log.dialect.types
    table = sa.Table(
        log.names.marks,
        sa.MetaData(schema=log.names.schema),
        sa.Column("name", sa.String(NAME_CHARACTERS), primary_key=True),
        sa.Column("value", types.log_value),
        **types.table_options,
    )
    try:
        with log.transaction() as connection:
            table.create(connection, checkfirst=True)
    except SourceError:
        # Another publisher may have made it meanwhile, which each database tells otherwise.
        with log.transaction() as connection:
            if not sa.inspect(connection).has_table(table.name, schema=table.schema):
                raise


def keeper_of(
    where: str, prefix: str, name: str, lease: float, alive: Callable[[], bool] = lambda: True
) -> StreamKeeper:
    """Open the position in a file or, for a URL, in a database."""
    if "://" in where:
        return DatabaseKeeper(where, prefix, lease, alive)
    return FileKeeper(Path(where), name)
