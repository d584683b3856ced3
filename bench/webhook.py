"""How fast webhooks reach a receiver that takes its time for each, over one connection and over several."""

from __future__ import annotations

from base64 import b64encode
from functools import partial
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Final

from sqlalchemy import create_engine, text

from bench.backlog import temporary_folder
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.receiver import TAKES, name_of, port
from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import from_settings
from eventlog.daemon.publisher import Publisher
from eventlog.tracked.options import Style, TriggerOptions

REQUESTS: Final = 2_000
QUICK: Final = 20
CONNECTIONS: Final = 8
PROMISED: Final = 6.0
"""How many times as fast as one so many connections are to be."""

SECRET: Final = f"whsec_{b64encode(bytes(32)).decode()}"
ROWS: Final = (
    "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < :count)"
    " INSERT INTO people SELECT id, 'Ada ' || id FROM n"
)
_numbers = count()


def benchmark(*, quick: bool) -> Benchmark:
    """The same new rows, sent over one connection and over eight."""
    requests = QUICK if quick else REQUESTS
    return Benchmark(
        name="webhook",
        question=f"how fast do webhooks reach a receiver that takes {TAKES * 1000:g} ms for each?",
        unit="request",
        contestants=[
            Contestant(name=name_of(connections), run=partial(seconds, requests, connections), units=requests)
            for connections in (1, CONNECTIONS)
        ],
        targets=_targets,
        note=(
            f"{requests:,} objects with one change each, in a new log of SQLite; each change is a signed request of its own."
            " The receiver is a process of its own on the same machine, takes that long for every request however many"
            " come at once, and says nothing of it."
        ),
    )


def seconds(requests: int, connections: int) -> float:
    """How long a publisher takes for a new log of so many objects, from its first look to its last answer."""
    url = _new_log(temporary_folder() / f"{next(_numbers)}.db", requests)
    output = {"sink": "webhook", "url": f"http://127.0.0.1:{port()}/", "secrets": [SECRET], "connections": connections}
    settings = {"source": {"url": url}, "publisher": {"allow_loopback": True}, "output": [output]}
    with Publisher(from_settings(settings, {}, origin="a benchmark")) as publisher:
        began = perf_counter()
        documents = sum(report.documents for report in publisher.rounds(until_empty=True))
        taken = perf_counter() - began
    if documents != requests:
        raise AssertionError(f"{documents} of {requests} requests were sent")
    return taken


def _new_log(file: Path, requests: int) -> str:
    """The URL of a database whose log has so many new objects."""
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)"))
    install(engine)
    track(engine, ["people"], TriggerOptions(style=Style("field")))
    with engine.begin() as connection:
        connection.execute(text(ROWS), {"count": requests})
    engine.dispose()
    return str(engine.url)


def _targets(timings: Timings) -> list[Target]:
    gained = timings[name_of(CONNECTIONS)].rate / timings[name_of(1)].rate
    promise = f"{CONNECTIONS} connections at least {PROMISED:g} times as fast as one"
    return [Target(promise=promise, measured=f"{gained:.2f} times", reached=gained >= PROMISED)]
