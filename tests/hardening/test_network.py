"""A publisher whose connections, server or disk fail it: it waits, goes on, and nothing is missing or twice."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import OperationalError

from tests import servers
from tests.hardening.crash import configure, finish, prepare, publisher, waiting, writers
from tests.hardening.proxy import Proxy
from tests.hardening.quantity import scaled
from tests.hardening.replaying import tables
from tests.hardening.targets import Files
from tests.integration.publishing import until


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


@pytest.mark.parametrize("trouble", TROUBLES)
def test_connections_that_go_bad_lose_and_double_nothing(postgresql: Engine, tmp_path: Path, trouble: str) -> None:
    aim = Files(tmp_path, "field")
    prepare(postgresql, aim.style)
    url = postgresql.url
    with Proxy(url.host or "", url.port or 0) as proxy:
        config = configure(
            postgresql, tmp_path, aim, url.set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        )
        one = publisher(config, "files")
        with writers(postgresql, 3):
            until(lambda: proxy.carried > 20_000, "the publisher works through the proxy")
            for _ in range(scaled(2)):
                TROUBLES[trouble](proxy)
                before = proxy.carried
                until(lambda: proxy.carried > before + 3000 or not proxy.open, "it goes on")  # noqa: B023  # used at once
                proxy.open, proxy.delay, proxy.rate = True, 0.0, 0.0
        assert one.is_alive()
        until(lambda: not waiting(postgresql), "everything is published")
        one.kill()
        one.join()
    assert aim.check(postgresql) == tables(postgresql)


@contextmanager
def own_server(folder: Path) -> Iterator[tuple[Engine, Callable[[], None]]]:
    """A server that flushes what it commits, and what stops it at once and starts it again."""
    binaries = servers._postgres_binaries()
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
        running[-1].wait(30)
        engine.dispose()
        start()

    start()
    try:
        yield engine, crash
    finally:
        engine.dispose()
        running[-1].send_signal(signal.SIGQUIT)
        running[-1].wait(30)


def test_a_server_that_is_stopped_at_once_loses_and_doubles_nothing() -> None:
    folder = Path(tempfile.mkdtemp(prefix="eventlog-hard-", dir="/tmp"))
    try:
        with own_server(folder) as (engine, crash):
            aim = Files(folder, "row-back")
            prepare(engine, aim.style)
            config = configure(engine, folder, aim)
            one = publisher(config, "files")
            with writers(engine, 5):
                for _ in range(scaled(1)):
                    until(lambda: _settled(engine) > 5, "rows are published")
                    crash()
                    until(lambda: _settled(engine) > 15, "it goes on")
            assert one.is_alive()
            one.kill()
            one.join()
            finish(engine, config, "files")
            assert aim.check(engine) == tables(engine)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 64 kB; skips where nobody may mount one."""
    place = folder / "small"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_is_waited_for(sqlite: Engine, tmp_path: Path) -> None:
    with small_disk(tmp_path) as disk:
        published = published_with_little_room(sqlite, tmp_path, disk)
    assert published == tables(sqlite)


def test_a_disk_without_room_for_another_file_is_waited_for(
    sqlite: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same by a file system that says so, where none can be mounted."""
    from eventlog.daemon.publisher import Publisher
    from tests.integration.publishing import config_of, in_thread, published, settled, site

    log = site(sqlite)
    log.write_all(range(1, 20))
    real, full = os.write, [True]

    def write(descriptor: int, data: bytes) -> int:
        if full[0] and len(data) > 100:
            real(descriptor, bytes(data)[:50])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    out = tmp_path / "out"
    with in_thread(Publisher(config_of(sqlite, out))) as working:
        until(lambda: working.vitals.reading().error is not None, "it says that the disk is full")
        assert "No space left" in str(working.vitals.reading().error)
        assert published(out) == {}
        full[0] = False
        until(settled(log, 19), "it goes on")
    assert [path.name for path in out.iterdir() if path.suffix != ".xml"] == []


def test_a_file_larger_than_allowed_is_waited_for_and_leaves_nothing(tmp_path: Path) -> None:
    """RLIMIT_FSIZE cuts a document in the middle: what was begun goes, and nobody sees it."""
    from eventlog.errors import SinkError
    from eventlog.model import Document
    from eventlog.sinks.files import FileSink

    sink = FileSink(tmp_path / "out", ".xml")
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, former[1]))
        with pytest.raises(SinkError, match="File too large") as caught:
            sink.write([Document(id="1", body=bytes(5000), covers={})])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
        signal.signal(signal.SIGXFSZ, ignored)
    assert caught.value.may_pass
    assert list((tmp_path / "out").iterdir()) == []


def published_with_little_room(engine: Engine, folder: Path, disk: Path) -> object:
    """What consumers know in the end, of a disk that was full for a while."""
    aim = Files(disk, "field")
    prepare(engine, aim.style)
    config = configure(engine, folder, aim)
    (disk / "ballast").write_bytes(bytes(48 * 1024))
    one = publisher(config, "files")
    with writers(engine, 9):
        until(lambda: shutil.disk_usage(disk).free == 0, "the disk is full")
        assert one.is_alive()
    (disk / "ballast").unlink()
    # What has come meanwhile needs more room than was freed.
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
    until(lambda: not waiting(engine), "everything is published")
    one.kill()
    one.join()
    return aim.check(engine)


def _settled(engine: Engine) -> int:
    end = time.monotonic() + 10
    while True:
        try:
            with engine.connect() as connection:
                return int(connection.execute(text("SELECT count(*) FROM event_log WHERE status = 'S'")).scalar_one())
        except OperationalError:
            assert time.monotonic() < end
            time.sleep(0.1)
