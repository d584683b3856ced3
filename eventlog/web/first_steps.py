"""The three steps of a first visit, until the first document was published. Pure."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.core.model import Status
from eventlog.web.reading import PageReading

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_FILE: Final = "eventlog.toml"
"""What a command reads where nobody names a file."""

DATABASE_NAMES: Final = ("EVENTLOG_DATABASE", "EVENTLOG_SOURCE__URL", "EVENTLOG_CONFIG")
"""Variables by which a command finds its database."""


class FirstStep(Struct, frozen=True, kw_only=True):
    """A step, the command that does it, and whether it is done."""

    what: str
    command: str
    is_done: bool


def first_steps(reading: PageReading) -> tuple[FirstStep, ...]:
    """List the steps to the first document; nothing where one was published, or nobody knows."""
    if not is_new(reading):
        return ()
    tables = sorted({trigger.owner for trigger in reading.triggers})
    table = shlex.quote(tables[0]) if tables else "TABLE"
    options = reading.commands or ""
    return (
        FirstStep(what="Track a table", command=f"eventlog track{options} TABLE", is_done=bool(tables)),
        FirstStep(what="Start the publisher", command=f"eventlog run{options}", is_done=reading.publishes),
        FirstStep(
            what="Change a row of the table, or publish all of them",
            command=f"eventlog refresh{options} {table}",
            is_done=False,
        ),
    )


def is_new(reading: PageReading) -> bool:
    """Return whether no row of this log has ever been published, as far as was counted."""
    facts, flow = reading.facts, reading.flow
    if reading.commands is None or reading.trouble or facts is None or flow is None or facts.failing:
        return False
    processed = sum(count for status, count in facts.rows.items() if status != Status.NEW)
    taken = any(output.state.position is not None for output in reading.places)
    return not (processed or taken or flow.finished)


def command_options(url: str, shown: str, environment: Mapping[str, str] = os.environ) -> str:
    """Write what a command needs to find this database from here: nothing where a file or a variable names it, or
    where the URL has a secret.
    """
    if Path(DEFAULT_FILE).exists() or any(name in environment for name in DATABASE_NAMES) or url != shown:
        return ""
    return f" --database {shlex.quote(url)}"
