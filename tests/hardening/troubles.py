"""What can go wrong with connections, and with a server: troubles that a test makes on purpose."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from tests.hardening.proxy import Proxy
from tests.integration.publishing import until
from tests.support import servers


def reset(proxy: Proxy) -> None:
    proxy.reset()


def half_close(proxy: Proxy) -> None:
    proxy.half_close()


def delay(proxy: Proxy) -> None:
    proxy.delay = 0.03


def throttle(proxy: Proxy) -> None:
    proxy.rate = 30_000.0


def refuse(proxy: Proxy) -> None:
    proxy.open = False
    proxy.reset()


TROUBLES: dict[str, Callable[[Proxy], None]] = {
    "reset": reset,
    "half-close": half_close,
    "delay": delay,
    "throttle": throttle,
    "refused for a while": refuse,
}


def endure(proxy: Proxy, trouble: str, times: int) -> None:
    """Makes the trouble so many times; each ends when somebody has come through, or has come in vain."""
    for _ in range(times):
        carried, refused = proxy.carried, proxy.refused
        TROUBLES[trouble](proxy)
        if proxy.open:
            until(lambda: proxy.carried > carried + 3000, "it goes on")  # noqa: B023  # used at once
        else:
            until(lambda: proxy.refused > refused, "it tries again")  # noqa: B023  # used at once
        proxy.open, proxy.delay, proxy.rate = True, 0.0, 0.0


@contextmanager
def own_server() -> Iterator[tuple[Engine, Callable[[], None]]]:
    """A server that flushes what it commits, and what stops it at once and starts it again."""
    folder = Path(tempfile.mkdtemp(prefix="eventlog-hard-"))  # the owner of the server may enter it
    try:
        with _server_in(folder) as found:
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _server_in(folder: Path) -> Iterator[tuple[Engine, Callable[[], None]]]:
    binaries = servers.postgres_binaries()
    if binaries is None:
        servers.absent("postgres", "no binaries")
    owner = servers.server_owner(folder)
    servers._initialise(binaries, folder, owner)
    port = servers.free_port()
    engine = create_engine(f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres")
    options = ["-k", str(folder), "-p", str(port), "-c", "listen_addresses=127.0.0.1"]
    running: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        with (folder / "log").open("ab") as log:
            command = [str(binaries / "postgres"), "-D", str(folder / "data"), *options]
            running.append(subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, user=owner))
        servers.wait_until_ready("postgres", engine.url, running[-1], folder / "log")

    def crash() -> None:
        running[-1].send_signal(signal.SIGQUIT)  # an immediate shutdown: no checkpoint, no farewell
        running[-1].wait(servers.PATIENCE)
        engine.dispose()
        start()

    start()
    try:
        yield engine, crash
    finally:
        engine.dispose()
        running[-1].send_signal(signal.SIGQUIT)
        running[-1].wait(servers.PATIENCE)


def finished(engine: Engine) -> int:
    """How many rows of the log are published, as soon as its server answers."""
    end = time.monotonic() + servers.PATIENCE
    while True:
        try:
            with engine.connect() as connection:
                return int(connection.execute(text("SELECT count(*) FROM event_log WHERE status = 'S'")).scalar_one())
        except OperationalError:
            assert time.monotonic() < end
            time.sleep(0.1)
