"""Points at which a process may die, fail, be frozen or let others act; and the guards that lead
what it does past them.

A guard knows no code of a heart: statements and commits are met at SQLAlchemy's engines, changes of
folders at the module `os`, sinks at their seam, whatever methods that has.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, Literal
from weakref import WeakSet

import msgspec
import sqlalchemy
from msgspec import Struct
from sqlalchemy import Engine, event

from eventlog.core.errors import SinkError
from tests.histories.accidents import Accidents
from tests.histories.stage import Actor, Died, Stage, on_stage
from tests.support.compiled import engine_on

Kind = Literal["sql", "file", "sink"]
Trace = Callable[[str], None]


class Points:
    """Where everything that happens comes past. `quiet` says that nothing goes wrong any more."""

    def __init__(self, stage: Stage, rng: Random, accidents: Accidents, trace: Trace, dies_at: str = "") -> None:
        self.stage = stage
        self.quiet = False
        self.died = False
        """Somebody has died where the profile wanted it."""
        self._dies_at = re.compile(dies_at or "(?!)").search
        self.counts: dict[str, int] = {}
        self._rng = rng
        self._accidents = accidents
        self._trace = trace

    def at(self, kind: Kind, place: str, error: Callable[[], Exception], *, done: bool) -> None:
        """One point, before something is done or after it. Whoever is no process on the stage
        passes.
        """
        actor = self.stage.current
        if actor is None:
            return
        if not actor.process.alive:
            raise Died
        if self.quiet:
            return
        when = "after" if done else "before"
        self._die(actor, f"{when} {place}")
        if self._rng.random() < getattr(self._accidents, f"{kind}_errors"):
            self.count("done and reported as an error" if done else "errors")
            self._trace(f"{actor.process.name}: an error {when} {place}")
            raise error()
        if (
            not done or kind != "sql" or place == "commit"
        ):  # what was asked is not read yet: SQLite would keep writers out
            self._meanwhile(actor, f"{when} {place}")

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def _die(self, actor: Actor, place: str) -> None:
        wanted = not self.died and self._dies_at(place) is not None
        self.died |= wanted
        if wanted or self._rng.random() < self._accidents.kills:
            self.count("kills")
            self._trace(f"{actor.process.name} dies {place}")
            actor.process.die()
            raise Died

    def _meanwhile(self, actor: Actor, place: str) -> None:
        """Perhaps lets others act, or freezes; in a transaction nobody could go on while all take
        turns in one thread.
        """
        draw = self._rng.random()
        freezes = draw < self._accidents.freezes
        if draw >= self._accidents.freezes + self._accidents.interruptions:
            return
        if any(map(in_transaction, actor.process.sessions)):
            return
        if freezes:
            self.count("freezes")
            self._trace(f"{actor.process.name} is frozen {place}")
            actor.process.frozen = True
        self.stage.stop()


def in_transaction(session: Any) -> bool:
    """Whether a driver's connection has begun something that others may have to wait for."""
    if isinstance(session, sqlite3.Connection):
        try:
            return session.in_transaction
        except sqlite3.ProgrammingError:
            return False  # it is closed
    if hasattr(session, "server_status"):  # PyMySQL, which learns nothing of a lock that a SELECT has taken
        return bool(session.open and (session.server_status & 1 or session in _begun))
    return not session.closed and session.info.transaction_status.name not in ("IDLE", "UNKNOWN")


_begun: WeakSet[Any] = WeakSet()
"""Sessions of PyMySQL that have executed something since their last commit."""

_create_engine = sqlalchemy.create_engine


def guarded_engine(points: Points) -> Callable[..., Engine]:
    """What stands for `create_engine` while a process is on the stage."""

    def create(url: Any, **options: Any) -> Engine:
        if on_stage().current is None:
            return _create_engine(url, **options)
        engine = engine_on(url, **options)
        _guard(engine, points)
        return engine

    return create


def _guard(engine: Engine, points: Points) -> None:
    """Leads statements and commits of an engine past points."""
    actor = points.stage.current
    assert actor is not None
    dialect: Any = engine.dialect

    def opened(session: Any, _: object) -> None:
        actor.process.sessions.append(session)
        if dialect.name == "sqlite":
            session.execute("PRAGMA synchronous = OFF")
            session.execute("PRAGMA busy_timeout = 0")  # who has the lock gets no turn while somebody waits for it

    event.listen(engine, "connect", opened)

    def lost() -> Exception:
        error = dialect.loaded_dbapi.OperationalError(*_said(dialect.name))
        if dialect.name == "sqlite":
            error.sqlite_errorcode = 5  # busy
        return error  # type: ignore[no-any-return]  # the driver is known at run time only

    def led(usual: Callable[..., Any], place: Callable[..., str]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            where = place(*given)
            points.at("sql", where, lost, done=False)
            found = usual(*given, **named)
            session = getattr(given[0], "driver_connection", None) or getattr(given[0], "connection", None)
            if session is not None and hasattr(session, "server_status") and not session.get_autocommit():
                _begun.add(session)
            points.at("sql", where, lost, done=True)
            return found

        return run

    def ended(usual: Callable[..., Any]) -> Callable[..., Any]:
        def run(session: Any) -> None:
            usual(session)
            session = getattr(session, "driver_connection", session)
            if hasattr(session, "server_status"):
                _begun.discard(session)

        return run

    for name in ("do_execute", "do_executemany", "do_execute_no_params"):
        setattr(dialect, name, led(getattr(dialect, name), _words))
    dialect.do_rollback = ended(dialect.do_rollback)
    dialect.do_commit = led(ended(dialect.do_commit), lambda *_: "commit")


def _said(database: str) -> tuple[object, ...]:
    return (2013, "Lost connection") if database in ("mysql", "mariadb") else ("database is locked",)


def _words(_: Any, statement: str, *__: Any) -> str:
    return " ".join(statement.split()[:6])


CHANGES: Final = ("replace", "rename", "unlink", "remove", "mkdir", "rmdir", "link")
"""The functions of `os` by which a folder changes."""


@contextmanager
def guarded_folder(points: Points, folder: Path, shown: Callable[[str, Path], None]) -> Iterator[None]:
    """Leads changes of what is below a folder past points; `shown` is told of each that was done."""
    usual = {name: getattr(os, name) for name in (*CHANGES, "open", "fsync")}
    below = f"{folder}{os.sep}"

    def led(name: str) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            path = _path_of(name, given, below)
            if path is None or points.stage.current is None:
                return usual[name](*given, **named)
            where = f"{name} {_without_clock(path.removeprefix(below))}"
            points.at("file", where, _full, done=False)
            found = None if name == "fsync" else usual[name](*given, **named)  # it shows nothing here, and costs most
            shown(name, Path(path))
            try:
                points.at("file", where, _full, done=True)
            except BaseException:
                if name == "open" and found is not None:
                    os.close(found)
                raise
            return found

        return run

    for name in usual:
        setattr(os, name, led(name))
    try:
        yield
    finally:
        for name, function in usual.items():
            setattr(os, name, function)


def _path_of(name: str, given: tuple[Any, ...], below: str) -> str | None:
    """What a call changes below the folder; None where it changes nothing there."""
    if name == "fsync":
        return "a file"
    if name == "open" and not given[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        return None
    path = given[1] if name in ("replace", "rename", "link") else given[0]
    text = os.fspath(path) if not isinstance(path, int) else ""
    return text if isinstance(text, str) and text.startswith(below) else None


def _without_clock(path: str) -> str:
    """A path without the number of a hidden file, which the system's process counts, and without
    epochs, which have times.
    """
    return re.sub(r"-\d+\.part$|/\d{20}\.json$|\d{20}=.*$", "…", path)


def _full() -> Exception:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class GuardedSink:
    """A sink whose calls come past points, whatever methods it has; `after` is told of each that
    was made.
    """

    def __init__(self, sink: Any, name: str, points: Points, after: Callable[[], None]) -> None:
        self._sink = sink
        self._name = name
        self._points = points
        self._after = after

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._sink, name)
        if isinstance(found, Struct):
            led = {
                field: self._led(field, value)
                for field in found.__struct_fields__
                if callable(value := getattr(found, field))
            }
            return msgspec.structs.replace(found, **led)
        return self._led(name, found) if callable(found) and name not in ("last", "close") else found

    def _led(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        where = f"{self._name}.{name}"

        def failed() -> Exception:
            return SinkError(f"{where} fails in this history.")

        def run(*given: Any, **named: Any) -> Any:
            self._points.at("sink", where, failed, done=False)
            try:
                found = call(*given, **named)
            finally:
                self._after()
            self._points.at("sink", where, failed, done=True)
            return found

        return run
