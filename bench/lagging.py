"""What a receiver that is dead costs the output beside it."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace
from sqlalchemy import text

from bench.backlog import Backlog, backlog, engine
from bench.broker import local_broker
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.config.outputs import OutputConfig
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import HttpOutput

PROMISED: Final = 0.9
"""Of the rate of the output alone."""
DEAD: Final = "dead"
JOURNAL: Final = ("batch", "output", "planned", "parked", "hold", "said")
"""The tables beside a log that remember a dead output's rows from one run to the next."""


def benchmark(*, quick: bool) -> Benchmark:
    """Files, and files with Kafka: alone, and beside a receiver at whose address nobody listens."""
    waiting = 2_000 if quick else 200_000
    alone, beside = backlog("alone_log", waiting), backlog("beside_log", waiting)
    contestants = [
        _contestant("files alone", alone, [], dead=False, floor=True),
        _contestant("files beside a dead receiver", beside, [], dead=True),
    ]
    servers = local_broker()
    if servers is not None:
        contestants += [
            _contestant("files and Kafka alone", alone, [kafka(servers, "alone")], dead=False),
            _contestant("files and Kafka beside a dead receiver", beside, [kafka(servers, "beside")], dead=True),
        ]
    return Benchmark(
        name="lagging",
        question="does a receiver that is dead hold up the files, and Kafka?",
        unit="row",
        contestants=contestants,
        targets=_targets,
        note=(
            "A publisher is opened, and its time ends when all rows that waited are in files, and in Kafka. The receiver's address is one"
            " where nobody listens, so its output lags behind from the first batch on and tries again and again; the rows"
            " that are kept for it are noted with each batch."
        ),
    )


def kafka(servers: str, name: str) -> KafkaOutput:
    """Messages in a topic for each table, at this broker."""
    messages = MessageSettings(topic=f"{name}.{{table}}")
    return KafkaOutput(
        name=f"kafka-{name}",
        servers=servers,
        transactional_id=f"bench-{name}",
        marks_topic=f"{name}.marks",
        create_topics=True,
        replication=1,
        messages=messages,
    )


def _contestant(
    name: str, log: Backlog, others: Sequence[OutputConfig], *, dead: bool, floor: bool = False
) -> Contestant:
    run = partial(_published, log, others, dead=dead)
    return Contestant(name=name, prepare=partial(_refilled, log), run=run, units=log.count, floor=floor)


def _refilled(log: Backlog) -> None:
    log.refill()
    journal = [f"{log.name}_{table}" for table in JOURNAL]
    with engine().begin() as connection:
        present = connection.execute(text("SELECT tablename FROM pg_tables")).scalars()
        for table in set(journal).intersection(present):  # the first publisher makes them
            connection.execute(text(f"TRUNCATE {table}"))


def _published(log: Backlog, others: Sequence[OutputConfig], *, dead: bool) -> None:
    config = log.config()
    dead_ones = [HttpOutput(name=DEAD, url=f"http://127.0.0.1:{closed_port()}/")] if dead else []
    config = replace(config, output=(*config.output, *others, *dead_ones))
    with Publisher(config) as publisher:
        for _ in publisher.rounds():
            if log.is_told(DEAD):
                break


def closed_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _targets(timings: Timings) -> list[Target]:
    found = []
    for what in ("files", "files and Kafka"):
        if f"{what} alone" in timings:
            ratio = timings[f"{what} alone"].each / timings[f"{what} beside a dead receiver"].each
            promise = f"{what} beside a dead receiver at {PROMISED:g} of their rate alone"
            found.append(Target(promise=promise, measured=f"{ratio:.2f}", reached=ratio >= PROMISED))
    return found
