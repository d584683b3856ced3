"""A snapshot that several readers share: exported by a session that keeps its transaction open while they read.

Spark plans a reading in a process that ends before the first reader begins. So a process of its own holds the snapshot
(`python -m eventlog_spark.snapshot`), and gives it up when nobody has read for a while: nothing has to tell it that the
reading is over, and a session that is forgotten does not keep the database from cleaning up for ever.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, Final

import msgspec

from eventlog.errors import EventlogError, SourceError
from eventlog_spark.bulk import BulkLog, reader_name
from eventlog_spark.faults import read, written
from eventlog_spark.options import LogOptions

if TYPE_CHECKING:
    from sqlalchemy import Connection

LOOK: Final = 2.0
"""Seconds between two looks whether somebody reads."""

EXPORT: Final = "SELECT pg_export_snapshot()"
READERS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = :name"


def hold(options: LogOptions) -> str:
    """Starts a process that holds a snapshot of the log, and says the snapshot's name."""
    process = subprocess.Popen(
        [sys.executable, "-m", "eventlog_spark.snapshot"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(msgspec.json.encode(options) + b"\n")
    process.stdin.flush()
    answer = process.stdout.readline().decode().strip()
    process.stdout.close()
    process.stdin.close()
    Thread(target=process.wait, daemon=True).start()  # it outlives us, or is fetched when it has ended
    if fault := read(answer):
        raise fault
    if not answer:
        raise SourceError("The log's snapshot could not be exported.", may_pass=False)
    return answer


def watch(readers: Callable[[], int], patience: float, *, look: float = LOOK) -> None:
    """Returns when nobody has read for as long as patience lasts."""
    last = time.monotonic()
    while time.monotonic() - last < patience:
        time.sleep(min(look, patience))
        if readers():
            last = time.monotonic()


def main() -> None:
    """Holds the snapshot that is asked for on standard input."""
    options = msgspec.json.decode(sys.stdin.buffer.readline(), type=LogOptions)
    try:
        log = BulkLog(options)
        with log.connection() as connection:
            snapshot = str(connection.exec_driver_sql(EXPORT).scalar_one())
            print(snapshot, flush=True)  # noqa: T201  # the answer to whoever started this process
            watch(lambda: _readers(connection, snapshot), options.patience)
    except EventlogError as error:
        print(written(error), flush=True)  # noqa: T201  # as above


def _readers(connection: Connection, snapshot: str) -> int:
    from sqlalchemy import text

    return int(connection.execute(text(READERS), {"name": reader_name(snapshot)}).scalar_one())


if __name__ == "__main__":
    main()
