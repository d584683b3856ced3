"""How fast webhooks reach a receiver that takes 5 ms for each, over one connection and over eight: `python -m bench.webhook`."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Final

from sqlalchemy import create_engine, text

from bench.receiver import port
from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from eventlog.config.settings import from_settings
from eventlog.daemon import Publisher

EVENTS: Final = 2000
ROUNDS: Final = 2
PROMISED: Final = 6.0
SECRET: Final = f"whsec_{b64encode(bytes(32)).decode()}"
ROWS: Final = (
    "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < :count)"
    " INSERT INTO people SELECT id, 'Ada ' || id FROM n"
)


def seconds(folder: Path, connections: int) -> float:
    """How long a publisher takes for a new log of so many objects, from its first look to its last answer."""
    engine = create_engine(f"sqlite:///{folder / 'app.db'}")
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)"))
    install(engine)
    track(engine, ["people"], TriggerOptions(style=Style("field")))
    with engine.begin() as connection:
        connection.execute(text(ROWS), {"count": EVENTS})
    url = f"http://127.0.0.1:{port()}/"
    output = {"sink": "webhook", "url": url, "secrets": [SECRET], "connections": connections}
    settings = {"source": {"url": str(engine.url)}, "publisher": {"allow_loopback": True}, "output": [output]}
    engine.dispose()
    with Publisher(from_settings(settings, {}, origin="a benchmark")) as publisher:
        began = perf_counter()
        documents = sum(report.documents for report in publisher.rounds(until_empty=True))
        taken = perf_counter() - began
    if documents != EVENTS:
        raise AssertionError(f"{documents} of {EVENTS} requests were sent")
    return taken


def main() -> int:
    """Measures in turn, after a round that does not count, and says whether eight are as much faster as they should be."""
    taken: dict[int, list[float]] = {1: [], 8: []}
    for _ in range(ROUNDS + 1):
        for connections, rounds in taken.items():
            with TemporaryDirectory() as folder:
                rounds.append(seconds(Path(folder), connections))
    middle = {connections: median(rounds[1:]) for connections, rounds in taken.items()}
    gained = middle[1] / middle[8]
    for connections, each in middle.items():
        print(f"connections = {connections}: {EVENTS / each:,.0f} requests a second")
    print(f"{gained:.1f} times as fast; {PROMISED:g} times is promised")
    return 0 if gained >= PROMISED else 1


if __name__ == "__main__":
    sys.exit(main())
