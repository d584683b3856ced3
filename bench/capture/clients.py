"""Transactions of single rows, as an application makes them: what capturing, and being watched, costs their rate."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import partial
from pathlib import Path
from typing import Final

from bench.capture.ground import Ground
from bench.capture.ways import CONSTANT, FIELD, NONE, NOTHING, PGQ, ROW_BACK, ROW_BACK_ROWS, grounds
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.postgresql import binaries
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

ROWS: Final = 20_000
TRANSACTIONS: Final = 3_000
"""About a second: many short turns compare better than few long ones, but each client has to read its plans anew in each."""
QUICK: Final = 80
SCRIPT: Final = (
    "\\set row random(1, {rows})\n"
    "UPDATE usr SET fname = 'first' || (random() * 1000000)::integer, dept = dept + 1 WHERE idu = :row;\n"
)
WATCHED: Final = "{}, looked at every ms"
LOOK_SECONDS: Final = 0.001
"""How often a publisher that has just had work looks for more; nothing of it is part of the writers' transactions."""
LEAST: Final = {ROW_BACK: 0.95, FIELD: 0.88}
"""The rate of these ways, watched, as a part of the rate without a trigger."""


def clients(number: int, *, quick: bool) -> Benchmark:
    """So many clients at once, each with its share of the transactions."""
    count = QUICK if quick else TRANSACTIONS
    found, missing = grounds((NONE, NOTHING, CONSTANT, ROW_BACK, FIELD, ROW_BACK_ROWS, PGQ), QUICK if quick else ROWS)
    for ground in found.values():
        ground.refill(full=True)
    contestants = [_contestant(ground, number, count, watched=False) for ground in found.values()]
    contestants += [_contestant(found[name], number, count, watched=True) for name in LEAST]
    return Benchmark(
        name=f"capture.{'one_client' if number == 1 else 'four_clients'}",
        question=f"at what rate do {number} client(s) update single rows?",
        unit="transaction",
        contestants=contestants,
        targets=_targets,
        note=(
            f"pgbench -c{number}, PostgreSQL with its own settings (fsync on), {ROWS:,} rows. 'Looked at' means that another"
            " session asks the log for waiting rows every millisecond, as a publisher at work does. The triggers that do nothing"
            f" and that insert constants are bounds: what any statement trigger costs, and any that writes a row.{missing}"
        ),
    )


def _contestant(ground: Ground, number: int, count: int, *, watched: bool) -> Contestant:
    name = ground.way.name
    return Contestant(
        name=WATCHED.format(name) if watched else name,
        run=partial(_watched if watched else _pgbench, ground, number, count),
        prepare=ground.forget,
        units=count,
        floor=name == NONE,
    )


def _pgbench(ground: Ground, number: int, count: int) -> float:
    """Seconds of the transactions alone, as pgbench tells them."""
    place = ground.engine.url
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(SCRIPT.format(rows=ground.rows))
        script.flush()
        command = [str(_program()), "-n", "-c", str(number), "-j", str(min(number, 2)), "-t", str(count // number)]
        options = ["-f", script.name, "-h", str(place.host), "-p", str(place.port), "-U", str(place.username)]
        done = subprocess.run([*command, *options, str(place.database)], check=False, capture_output=True, text=True)
    rate = re.search(r"tps = ([\d.]+) \(without initial connection time", done.stdout)
    if done.returncode or rate is None:
        raise RuntimeError(done.stdout + done.stderr)
    return count / float(rate[1])


def _watched(ground: Ground, number: int, count: int) -> float:
    """The same, while somebody looks for waiting rows."""
    ended = threading.Event()
    watcher = threading.Thread(target=_look, args=(ground, ended))
    watcher.start()
    try:
        return _pgbench(ground, number, count)
    finally:
        ended.set()
        watcher.join()


def _look(ground: Ground, ended: threading.Event) -> None:
    log = Log(ground.engine, LogNames())
    look = log.query("anything_waiting", among="among_all")
    with ground.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not ended.wait(LOOK_SECONDS):
            log.rows(connection, look)


def _program() -> Path:
    """The pgbench that came with the server, or from the search path; without it the benchmark ends with a sentence."""
    folder = binaries()
    beside = folder / "pgbench" if folder else None
    if beside is not None and beside.exists():
        return beside
    found = shutil.which("pgbench")
    if found is None:
        sys.exit("This benchmark needs pgbench, which Debian has in the package postgresql.")
    return Path(found)


def _targets(timings: Timings) -> list[Target]:
    rate = timings[NONE].rate
    found = []
    for name, least in LEAST.items():
        for told in (name, WATCHED.format(name)):
            share = timings[told].rate / rate
            promise = f"{told}: at least {least:g}× the rate without a trigger"
            found.append(Target(promise=promise, measured=f"{share:.2f}×", reached=share >= least))
    return found
