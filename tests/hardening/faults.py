"""Named places at which a publisher dies, as if the machine had lost its power there: nothing is flushed, nothing closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from importlib import import_module
from itertools import count
from typing import Any, Final, Literal

from msgspec import Struct

SINKS: Final = {
    "files": "eventlog.sinks.files:FileSink",
    "database": "eventlog.sinks.database.sink:DatabaseSink",
    "http": "eventlog.sinks.http.sink:HttpLane",
    "kafka": "eventlog.sinks.kafka.sink:KafkaSink",
}
BROKER: Final = "broker"
"""The Kafka sink with a real broker, where `kafka` has a stand-in that keeps what was never committed."""

JOURNAL: Final = "eventlog.publisher.journal:Journal"


class Fault(Struct, frozen=True, kw_only=True):
    """A function, and on which side of it death comes: before it, after it, or in the middle of what it writes."""

    place: str
    side: Literal["before", "after", "half"]


COMMON: Final = {
    "before read": Fault(place="eventlog.publisher.view:View.new_rows", side="before"),
    "after read": Fault(place="eventlog.publisher.view:View.new_rows", side="after"),
    "before the plan": Fault(place=f"{JOURNAL}.plan", side="before"),
    "in the plan": Fault(place=f"{JOURNAL}._move", side="after"),
    "after the plan": Fault(place=f"{JOURNAL}.plan", side="after"),
    "before settling": Fault(place=f"{JOURNAL}.done", side="before"),
    "in settling, rows marked": Fault(place="eventlog.publisher.journal:settle", side="after"),
    "after settling": Fault(place=f"{JOURNAL}.done", side="after"),
}

OWN: Final = {
    "files": {
        "in a document": Fault(place="eventlog.core.durable_files:_write_part", side="half"),
        "plan begun": Fault(place="eventlog.sinks.plan_folder:PlanFolder._begin", side="after"),
        "document shown": Fault(place="pathlib:Path.replace", side="after"),
    },
    "database": {
        "in a document": Fault(place="eventlog.sinks.database.sink:DatabaseSink._filled", side="after"),
        "position advanced": Fault(place="eventlog.sinks.database.control:Control.advance", side="after"),
        "document committed": Fault(place="eventlog.sinks.database.sink:DatabaseSink._written", side="after"),
    },
    "http": {
        "before sending": Fault(place="eventlog.sinks.http.post:Poster._exchange", side="before"),
        "answer not yet read": Fault(place="eventlog.sinks.http.connection:Plain.getresponse", side="before"),
        "answered": Fault(place="eventlog.sinks.http.post:Poster._exchange", side="after"),
    },
    "kafka": {
        "in a transaction": Fault(place="eventlog.sinks.kafka.sink:KafkaSink._send", side="after"),
        "before committing": Fault(place="eventlog.sinks.kafka.sink:KafkaSink._commit", side="before"),
        "committed": Fault(place="eventlog.sinks.kafka.sink:KafkaSink._commit", side="after"),
    },
}


def faults_of(sink: str, database: str = "sqlite") -> dict[str, Fault]:
    """Every place at which a publisher from this database to this sink can die."""
    kind = "kafka" if sink == BROKER else sink
    commit = f"{SINKS[kind]}.commit"
    around = {
        "before writing": Fault(place=commit, side="before"),
        "after writing": Fault(place=commit, side="after"),
    }
    return {**COMMON, **around, **OWN[kind]}


def arm(fault: Fault, times: int) -> None:
    """Lets this process die when it comes there for the so-manieth time."""
    owner, name = _owner(fault.place)
    real: Callable[..., Any] = getattr(owner, name)
    numbers = count(1)

    def armed(*args: Any, **kwargs: Any) -> Any:
        if fault.side == "after":
            found = real(*args, **kwargs)
            if next(numbers) >= times:
                die()
            return found
        if next(numbers) >= times:
            if fault.side == "half":
                target, content = args
                real(target, content[: len(content) // 2])
            die()
        return real(*args, **kwargs)

    setattr(owner, name, armed)


def die() -> None:
    """Ends this process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def _owner(place: str) -> tuple[Any, str]:
    module, _, path = place.partition(":")
    owner: Any = import_module(module)
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name
