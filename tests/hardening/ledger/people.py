"""A SCIM server, another one than ours: it has objects as they are now, and is judged by them in the end."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Final

from tests.hardening.ledger.book import Ledger, Place
from tests.hardening.ledger.checking import FIELDS, READ_BACK, Finding, Shown
from tests.support.scim import TOKEN, Answer, Judge, judge

MOODY: Final = 0.004
"""The part of the requests that it does not simply answer: after each the whole output waits, longer and longer."""

AWAY: Final[Answer] = ("503 Service Unavailable", [("Content-Length", "0")], b"")
BUSY: Final[Answer] = ("429 Too Many Requests", [("Retry-After", "0"), ("Content-Length", "0")], b"")
LOST: Final[Answer] = ("502 Bad Gateway", [("Content-Length", "0")], b"")
CONFIG: Final = """sink = "scim"
url = "{url}"
authorization = "Bearer {token}"
connections = 4
total_timeout = 5.0
[output.scim.tables.{fields}.columns]
id = "userName"
version = "title"
note = "displayName"
[output.scim.tables.{read_back}]
type = "Group"
[output.scim.tables.{read_back}.columns]
id = "displayName"
note = "externalId"
"""
KINDS: Final = (("User", FIELDS, "userName", "displayName"), ("Group", READ_BACK, "displayName", "externalId"))
"""What the server has: its types, the tables that they come from, where their key is and where their text."""


class People:
    """Users, whose names it keeps apart, and groups. Requests are asked for again, and answers to what it has done are lost."""

    name = "SCIM"

    def __init__(self, server: Judge, ledger: Ledger, again: Mapping[int, int], seed: int) -> None:
        self._server, self._ledger, self._again = server, ledger, again
        self._dice = random.Random(seed)
        self._lock = Lock()
        server.meddle, server.after = self._answer_before, self._answer_after

    def config(self) -> str:
        return CONFIG.format(url=self._server.url, token=TOKEN, fields=FIELDS, read_back=READ_BACK)

    def grown(self) -> object:
        return len(self._server.requests)

    def shown(self) -> Shown:
        return Shown(output=self.name, seen=(), has_changes=False)

    def watched(self) -> Sequence[Finding]:
        return [*self._judge()]

    def _judge(self) -> Iterator[Finding]:
        found: dict[Place, list[str | None]] = {}
        for kind, table, name, value in KINDS:
            for resource in self._server.resources(kind):
                found.setdefault((table, int(resource[name])), []).append(resource.get(value))
        for place, versions in self._ledger.objects().items():
            if place[0] not in (FIELDS, READ_BACK):
                continue
            there, last = found.pop(place, []), versions[-1]
            wanted = [] if last.op == "D" else [last.text]
            # What is asked for again tells a version that is over, so that nobody knows what it has now.
            if len(there) > 1 or (there != wanted and not self._again):
                what = "twice" if len(there) > 1 else "lost" if not there else "wrong value"
                why = f"{there}, {wanted} was to be"
                yield Finding(what=what, output=self.name, place=place, version=last.number, why=why)
        for place in found:
            yield Finding(what="never committed", output=self.name, place=place)

    def _answer_before(self, _method: str, _path: str) -> Answer | None:
        return self._draw((AWAY, BUSY))

    def _answer_after(self, _method: str, _path: str) -> Answer | None:
        return self._draw((LOST,))

    def _draw(self, answers: Sequence[Answer]) -> Answer | None:
        with self._lock:
            return self._dice.choice(answers) if self._dice.random() < MOODY else None


@contextmanager
def people(ledger: Ledger, again: Mapping[int, int], seed: int) -> Iterator[People]:
    """The server at work."""
    with judge() as server:
        yield People(server, ledger, again, seed)
