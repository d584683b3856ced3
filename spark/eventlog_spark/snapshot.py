"""A snapshot that several readers share: exported by a session that keeps its transaction open
while they read.

Spark plans a reading in a process that ends before the first reader begins. So a process of its own
holds the snapshot (`python -m eventlog_spark.snapshot`), and gives it up when nobody has read for a
while: nothing has to tell it that the reading is over, and a session that is forgotten does not
keep the database from cleaning up for ever. It loads nothing but the driver, because Spark waits
for it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import SourceError
from eventlog_spark.faults import read, write_error

if TYPE_CHECKING:
    from psycopg import Connection
    from sqlalchemy import Engine

LOOK_SECONDS: Final = 1.0
"""Seconds between two looks whether somebody reads."""

SETTLE: Final = "SET LOCAL search_path = pg_catalog, pg_temp"
"""What others call like a function or an operator of the server is none here."""

EXPORT: Final = "SELECT pg_export_snapshot()"
FORGET: Final = "SELECT pg_stat_clear_snapshot()"
"""Within a transaction PostgreSQL tells who is connected as it was when that was first asked."""

READERS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"


class SnapshotOrder(Struct, frozen=True, kw_only=True):
    """How psycopg connects, and how many seconds without a reader end the snapshot."""

    connect: Mapping[str, Any]
    patience: float


def reader_name(snapshot: str) -> str:
    """Return the session name for readers of a snapshot."""
    return f"eventlog {snapshot}"


def hold(engine: Engine, patience: float) -> str:
    """Start a process to hold a snapshot of the database, and return the snapshot's name."""
    _, arguments = engine.dialect.create_connect_args(engine.url)
    # The others are objects of this process, which no JSON can carry.
    plain = str | int | float
    connect = {name: value for name, value in arguments.items() if isinstance(value, plain)}
    # A session of its own: a Ctrl-C that is meant for us must not end it while others read.
    process = subprocess.Popen(
        [sys.executable, "-m", "eventlog_spark.snapshot"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    # On standard input: others can see the arguments of a process, and here is a password.
    order = msgspec.json.encode(SnapshotOrder(connect=connect, patience=patience))
    with process.stdin, process.stdout:
        process.stdin.write(order + b"\n")
        process.stdin.flush()
        answer = process.stdout.readline().decode().strip()
    # It outlives us, or is fetched when it has ended.
    Thread(target=process.wait, daemon=True).start()
    fault = read(answer)
    if fault is not None:
        raise fault
    if not answer:
        cause = "The process that should hold it ended without a word"
        hint = f"{cause}; try it again, or read with one partition."
        raise SourceError("The log's snapshot could not be exported.", hint=hint, may_pass=False)
    return answer


def watch(readers: Callable[[], int], patience: float, *, look: float = LOOK_SECONDS) -> None:
    """Wait until nobody has read for as long as patience lasts."""
    last = time.monotonic()
    while time.monotonic() - last < patience:
        time.sleep(min(look, patience))
        if readers():
            last = time.monotonic()


def main() -> None:
    """Hold the snapshot asked for on standard input."""
    import psycopg

    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=SnapshotOrder)
    try:
        with psycopg.connect(**order.connect) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            connection.execute(SETTLE)
            ((snapshot,),) = connection.execute(EXPORT).fetchall()
            print(snapshot, flush=True)  # noqa: T201  # the answer to whoever started this process
            # The snapshot lives as long as this transaction, which does nothing else.
            watch(lambda: _readers(connection, snapshot), order.patience)
    except psycopg.Error as error:
        cause = str(error).strip().splitlines()[0].rstrip(".")
        fault = SourceError(f"The log's snapshot cannot be exported: {cause}.")
        print(write_error(fault))  # noqa: T201  # as above


def _readers(connection: Connection[Any], snapshot: str) -> int:
    connection.execute(FORGET)
    ((count,),) = connection.execute(READERS, [reader_name(snapshot)]).fetchall()
    return int(count)


if __name__ == "__main__":
    main()
