"""SQLite: its constants and capabilities, its keys and its types."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from os.path import samestat
from pathlib import Path
from typing import Any

from eventlog.core.errors import SourceError
from eventlog.databases.sqlite.keys import SqliteLookup
from eventlog.databases.sqlite.types import TYPES
from eventlog.sql.ddl import Ddl
from eventlog.sql.dialect import Dialect
from eventlog.sql.driver import DatabaseDriver
from eventlog.sql.error_codes import ErrorCodes

_OPTIONS = frozenset({"timeout", "isolation_level", "detect_types", "check_same_thread", "cached_statements"})


def _options(given: Iterable[str]) -> set[str]:
    """Return the known options; with `uri` all of them, for SQLite ignores unknown ones."""
    if "uri" in given:
        return {*given}
    return {*_OPTIONS}


def _keep_commits(engine: Any) -> None:
    """Make commits durable when they return, however the library was built.

    EXTRA would flush the folder too: without it a power failure may bring back a journal and undo
    the last commit; a publisher then asks its targets. EXTRA costs a third of a small batch.
    """
    from sqlalchemy import event

    event.listen(engine, "connect", lambda driver, _: driver.execute("PRAGMA synchronous = FULL"))


def _prepare(engine: Any) -> None:
    """Prepare an engine before its first connection."""
    _keep_commits(engine)
    _follow_file(engine)


def _follow_file(engine: Any) -> None:
    """Drop each connection to a file that was replaced, and make no file in place of one that was deleted.

    An open file stays readable and writable without a name, and what is written there nobody finds.
    """
    from sqlalchemy import event
    from sqlalchemy.exc import DisconnectionError

    name = engine.url.database or ""
    if not name or name.startswith((":", "file:")):
        return
    path = Path(name)
    was_there = False

    def refuse_missing(*_: object) -> None:
        if was_there and not path.exists():
            hint = "Put it back; what is not published yet is published then."
            raise SourceError(f"The database file {path} was deleted or moved while it was used.", hint=hint)

    def note(_driver: object, record: Any) -> None:
        nonlocal was_there
        record.info["file"] = path.stat()
        was_there = True

    def compare(_driver: object, record: Any, _proxy: object) -> None:
        try:
            is_the_same = samestat(path.stat(), record.info["file"])
        except OSError:
            refuse_missing()
            is_the_same = False
        if not is_the_same:
            raise DisconnectionError("Another file is there now.")

    event.listen(engine, "do_connect", refuse_missing)
    event.listen(engine, "connect", note)
    event.listen(engine, "checkout", compare)


def _is_database(file: Path) -> bool:
    """Return False if SQLite says that a file is no database.

    Only SQLite may open one. When a process closes a file, the system drops all locks that the process has on it,
    those of its open connections too. Then the next process that ends a connection believes to be the last one,
    and deletes the WAL with what is committed there.
    """
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=0)) as driver:
            driver.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        return getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_NOTADB
    return True


SQLITE = Dialect(
    name="sqlite",
    room=__package__ or "",
    lookup=SqliteLookup(),
    types=TYPES,
    typed_columns=False,
    identifier_bytes=255,
    embedded=True,
    lone_writer=True,
    schemas=False,
    now="strftime('%Y-%m-%d %H:%M:%f', 'now')",
    context="(SELECT value FROM {sessions})",
    later="strftime('%Y-%m-%d %H:%M:%f', {now}, '{seconds} seconds')",
    driver=DatabaseDriver(
        prepare=_prepare,
        is_database=_is_database,
        stores_any_bytes=True,
        url_options=_options,
    ),
    ddl=Ddl(
        partial_indexes=True,
        transactional_ddl=True,
        qualified_in_triggers=False,
        # sqlite3 begins no transaction before DDL; this one waits for the file at once and not in its
        # middle.
        begin_ddl="BEGIN IMMEDIATE",
    ),
    errors=ErrorCodes(
        error_number="sqlite_errorcode",
        # Busy, locked, interrupted; no memory, disk, space or file.
        passing_errors=frozenset([5, 6, 7, 9, 10, 13, 14, 15]),
        locked_errors=frozenset([5, 6]),
        damage_codes=frozenset({11}),
        advice={
            8: "See that this user may write the database file, and into its folder.",
            11: "Restore the database file from a backup.",
            13: "Free some space on the disk of the database file.",
        },
    ),
)
