"""Outputs that are away now and then: a folder that is a file for a while, a database behind a proxy that lets nobody in, an
HTTP receiver that says that it is away. Each breaks and comes back by itself, whoever publishes meanwhile.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from sqlalchemy import make_url

from tests.hardening.ledger.outputs import ChangeTables, XdsFiles
from tests.hardening.proxy import Proxy


@runtime_checkable
class Breakable(Protocol):
    """An output that can be away."""

    name: str

    def set_away(self, away: bool) -> None:
        """From now on it is away, or there again."""


class BreakableFiles(XdsFiles):
    """A folder behind a link, which leads to a file while it is away."""

    def __init__(self, folder: Path, *, replaces: bool = True) -> None:
        super().__init__(folder, replaces=replaces)
        self._real, self._file = folder / "xds.real", folder / "xds.file"
        self._real.mkdir(mode=0o700)
        self._file.touch()
        self.set_away(False)

    def config(self) -> str:
        return f'name = "xds"\n{super().config()}'  # without it would be called after where the link leads now

    def set_away(self, away: bool) -> None:
        """Leads elsewhere at once: nobody finds nothing there."""
        link = self.folder.with_name("xds.link")
        link.symlink_to(self._file if away else self._real)
        link.replace(self.folder)

    def grown(self) -> object:
        return sum(1 for _ in self._real.iterdir())


class TablesBehind(ChangeTables):
    """Change tables that the publisher reaches through a proxy, and we without it."""

    def __init__(self, url: str, proxy: Proxy) -> None:
        super().__init__(url)
        self.url = make_url(url).set(host="127.0.0.1", port=proxy.port).render_as_string(hide_password=False)
        self._proxy = proxy

    def set_away(self, away: bool) -> None:
        self._proxy.open = not away
        if away:
            self._proxy.reset()


@contextmanager
def tables_behind(url: str) -> Iterator[TablesBehind]:
    """Change tables behind a proxy of their own."""
    server = make_url(url)
    assert server.host is not None
    assert server.port is not None
    with Proxy(server.host, server.port) as proxy:
        yield TablesBehind(url, proxy)


def trouble(
    output: Breakable,
    dice: random.Random,
    there: tuple[float, float] = (0.3, 3.0),
    away: tuple[float, float] = (0.1, 1.5),
) -> Callable[[], None]:
    """Lets an output be away once, after a while; to be called again and again. Both last some seconds of a range."""

    def away_and_back() -> None:
        time.sleep(dice.uniform(*there))
        output.set_away(True)
        try:
            time.sleep(dice.uniform(*away))
        finally:
            output.set_away(False)

    return away_and_back
