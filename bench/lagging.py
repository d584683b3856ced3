"""What a receiver that is dead costs the output beside it, and how fast an output catches up that is far behind."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace
from sqlalchemy import text

from bench.backlog import Backlog, backlog, engine, settle_down
from bench.broker import local_broker
from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.care.outputs import pause
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.daemon.publisher import Publisher
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames

PROMISED: Final = 0.9
"""Of the rate of the output alone."""
DEAD: Final = "dead"
LATE: Final = "late"
FAR, FAR_ALONE = "files, catching up with what others have", "files alone, as many rows"
JOURNAL: Final = ("batch", "output", "planned", "parked", "hold", "answer")
"""The tables beside a log that remember a dead output's rows from one run to the next."""


def benchmark(*, quick: bool) -> Benchmark:
    """Files, and files with Kafka: alone, and beside a receiver at whose address nobody listens."""
    waiting = 2_000 if quick else 200_000
    alone, beside = backlog("alone_log", waiting), backlog("beside_log", waiting)
    contestants = [
        _contestant("files alone", alone, [], dead=False, floor=True),
        _contestant("files beside a dead receiver", beside, [], dead=True),
    ]
    far_rows = waiting if quick else 1_000_000
    far, far_alone = backlog("far_log", far_rows), backlog("far_alone_log", far_rows)
    contestants += [
        _contestant(FAR_ALONE, far_alone, [], dead=False),
        Contestant(name=FAR, prepare=partial(_left_behind, far), run=partial(_caught_up, far), units=far.count),
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
            " that are kept for it are noted with each batch. An output that catches up was paused until another one had all"
            f" {far_rows:,} rows; its time begins when it is resumed."
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


def _two_outputs(log: Backlog) -> Config:
    config = log.config()
    late = FilesOutput(name=LATE, path=str(log.folder.parent / LATE))
    return replace(config, output=(*config.output, late))


def _left_behind(log: Backlog) -> None:
    """One output has all rows, and the other none."""
    _refilled(log)
    shutil.rmtree(log.folder.parent / LATE, ignore_errors=True)
    config = _two_outputs(log)
    with Publisher(config):  # makes both known
        pass
    pause(Log(engine(), LogNames(table=log.name)), LATE, [LATE], by="bench")
    with Publisher(config) as publisher:
        for _ in publisher.rounds():
            if log.is_told(LATE):
                break
    with engine().begin() as connection:
        connection.execute(text(f"UPDATE {log.name}_output SET paused = NULL"))
    settle_down(log.name)


def _caught_up(log: Backlog) -> None:
    with Publisher(_two_outputs(log)) as publisher:
        for _ in publisher.rounds(until_empty=True):
            pass
    with engine().connect() as connection:
        assert not connection.execute(text(f"SELECT count(*) FROM {log.name} WHERE status = 'N'")).scalar_one()


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
    ratio = timings[FAR_ALONE].each / timings[FAR].each
    promise = f"an output far behind catches up at {PROMISED:g} of its rate alone"
    found.append(Target(promise=promise, measured=f"{ratio:.2f}", reached=ratio >= PROMISED))
    return found
