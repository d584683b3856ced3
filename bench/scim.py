"""How fast new users reach a server of SCIM that takes its time for each, beside a bare client with as many connections."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count
from time import perf_counter
from typing import Any, Final

import httpx2
from sqlalchemy import create_engine, text

from bench.backlog import temporary_folder
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.receiver import TAKES, port
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, from_settings
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.scim.paths import CORE_USER
from eventlog.tracked.options import Style, TriggerOptions

USERS: Final = 3_000
QUICK: Final = 40
CONNECTIONS: Final = 8
PROMISED: Final = 500
"""Users a second."""

COLUMNS: Final = {
    "login": "userName",
    "given": "name.givenName",
    "family": "name.familyName",
    "mail": 'emails[type eq "work"].value',
    "works": "active",
}
ROWS: Final = (
    "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < :count)"
    " INSERT INTO people SELECT id, 'user' || id, 'Ada', 'Love', 'user' || id || '@example.com', 1 FROM n"
)
FLOOR: Final = f"a bare httpx client with {CONNECTIONS} connections"
_numbers = count()


def benchmark(*, quick: bool) -> Benchmark:
    """The same new users, by a publisher and by a bare client."""
    users = QUICK if quick else USERS
    styles = ("row-back", "image")
    return Benchmark(
        name="scim",
        question=f"how fast do users reach a server that takes {TAKES * 1000:g} ms for each?",
        unit="user",
        contestants=[
            Contestant(name=FLOOR, run=partial(seconds_of_floor, users), units=users, floor=True),
            *(Contestant(name=name_of(style), run=partial(seconds, users, style), units=users) for style in styles),
        ],
        targets=_targets,
        note=(
            f"{users:,} new users in a new log of SQLite, each a POST of its own over {CONNECTIONS} connections, whose id is"
            " kept in the log. The server is a process of its own on the same machine, and takes that long for each request,"
            " however many come at once."
        ),
    )


def name_of(style: str) -> str:
    """What stands beside the figure."""
    return f"triggers of the style {style}"


def seconds(users: int, style: str) -> float:
    """How long a publisher takes for a new log of so many users, from its first look to its last answer."""
    with Publisher(_make_config(users, style)) as publisher:
        began = perf_counter()
        documents = sum(report.documents for report in publisher.rounds(until_empty=True))
        taken = perf_counter() - began
    if documents != users:
        raise AssertionError(f"{documents} of {users} users were sent")
    return taken


def seconds_of_floor(users: int) -> float:
    """How long the client takes for requests that it does not have to make of anything."""
    return asyncio.run(_post_all(users))


async def _post_all(users: int) -> float:
    bodies = iter([_make_user(number) for number in range(users)])
    limits = httpx2.Limits(max_connections=CONNECTIONS)
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port('scim')}", limits=limits) as client:

        async def post() -> None:
            for body in bodies:
                answer = await client.post("/Users", json=body)
                assert answer.json()["id"]

        began = perf_counter()
        await asyncio.gather(*(post() for _ in range(CONNECTIONS)))
        return perf_counter() - began


def _make_user(number: int) -> dict[str, Any]:
    login = f"user{number}"
    return {
        "schemas": [CORE_USER],
        "userName": login,
        "name": {"givenName": "Ada", "familyName": "Love"},
        "emails": [{"type": "work", "value": f"{login}@example.com"}],
        "active": True,
    }


def _make_config(users: int, style: str) -> Config:
    """Make a log with so many new users, and a publisher's configuration of it."""
    url = f"sqlite:///{temporary_folder() / f'{next(_numbers)}.db'}"
    engine = create_engine(url)
    with engine.begin() as connection:
        types = "login TEXT NOT NULL, given TEXT, family TEXT, mail TEXT, works INTEGER"
        connection.execute(text(f"CREATE TABLE people (id INTEGER PRIMARY KEY, {types})"))
    install(engine)
    track(engine, ["people"], TriggerOptions(style=Style(style)))
    with engine.begin() as connection:
        connection.execute(text(ROWS), {"count": users})
    engine.dispose()
    address = f"http://127.0.0.1:{port('scim')}"
    mapping = {"tables": {"people": {"columns": COLUMNS}}}
    output = {"sink": "scim", "url": address, "connections": CONNECTIONS, "scim": mapping}
    settings = {"source": {"url": url}, "publisher": {"allow_loopback": True}, "output": [output]}
    return from_settings(settings, {}, origin="a benchmark")


def _targets(timings: Timings) -> list[Target]:
    rates = {name: timing.rate for name, timing in timings.items() if name != FLOOR}
    lowest = min(rates.values())
    promise = f"at least {PROMISED} users a second"
    return [Target(promise=promise, measured=f"{lowest:,.0f}", reached=lowest >= PROMISED)]
