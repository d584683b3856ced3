"""A page on a log, and a visitor that speaks HTTP to it: cookies are kept, redirects are not followed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from http.cookies import SimpleCookie
from typing import Any, Protocol
from urllib.parse import urlencode

from msgspec import Struct
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import library_journal
from eventlog.sinks.outputs import FilesOutput
from eventlog.web.open_page import open_page
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable, installed
from tests.integration.publishing import url_of

HOSTILE = (
    "<script>document.title='taken'</script>",
    '"><img src=x onerror="document.title=\'taken\'">',
    "'><svg onload=\"document.title='taken'\"></svg>",
    "javascript:document.title='taken'",
    "</pre></td></table><h1>taken</h1>",
    "\u202etxet desrever",
)
"""What somebody might write into a table so that our page does their will."""


def bare(page: str) -> str:
    """A page without the names of columns that cells carry for phones."""
    return re.sub(r' data-column="[^"]*"', "", page)


def buttons(page: str) -> list[str]:
    """The buttons that do something: not those that look for a text or copy one."""
    found = re.findall(r"<button[^>]*>([^<]*)", page)
    return [text for text in found if text not in ("Find", "Copy")]


class Answered(Struct, frozen=True, kw_only=True):
    """What the page answered."""

    status: int
    headers: Mapping[str, str]
    body: str

    @property
    def proof(self) -> str:
        """The number that a form of this page sends along."""
        found = re.search(r'name="proof" value="([^"]+)"', self.body)
        assert found is not None, self.body
        return found[1]


class AtPort(Protocol):
    """Where a page is."""

    @property
    def port(self) -> int: ...


class Visit:
    """Somebody with a browser that has no JavaScript."""

    def __init__(self, page: AtPort, **headers: str) -> None:
        self._page = page
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> Answered:
        return self._ask("GET", path, None, headers)

    def post(self, path: str, form: Mapping[str, Any], **headers: str) -> Answered:
        return self._ask("POST", path, urlencode(form, doseq=True), headers)

    def _ask(self, method: str, path: str, body: str | None, headers: Mapping[str, str]) -> Answered:
        connection = HTTPConnection("127.0.0.1", self._page.port, timeout=30)
        sent = self.headers | {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        for line in response.headers.get_all("set-cookie") or []:
            self.cookies |= {name: morsel.value for name, morsel in SimpleCookie(line).items()}
        return Answered(status=response.status, headers=dict(response.headers.items()), body=text)


def watched(engine: Engine) -> LogTable:
    """A log with rows of every kind, hostile ones among them."""
    log = installed(engine)
    log.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), lname VARCHAR(40))")
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (1, 'Jack', 'Frost')")
    log.write(1, status="S")
    log.write(2, event_type=2, old_value="Jack", new_value="John")
    log.write(3, "idu=nothing at all", status="E")
    for number, hostile in enumerate(HOSTILE, 10):
        log.write(number, f"idu={hostile}", status="E", old_value=hostile, new_value=hostile, perpetrator=hostile[:40])
        log.run(
            "INSERT INTO event_log_outcome (record_id, status, reason, note) VALUES (:n, 'E', 'invalid', :note)",
            {"n": number, "note": hostile},
        )
    return log


@contextmanager
def opened(
    engine: Engine,
    web: WebConfig | None = None,
    vitals: PublisherHealth | None = None,
    address: str = "127.0.0.1:0",
    log: str = "event_log",
) -> Iterator[PageServer]:
    """The page, until the block ends."""
    config = Config(
        source=SourceConfig(url=url_of(engine), log=log),
        output=(FilesOutput(path="out"),),
        tables={"web": web or WebConfig()},
    )
    page = open_page(address, config, library_journal(), vitals)
    try:
        yield page
    finally:
        page.close()
