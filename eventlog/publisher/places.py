"""The places of outputs in a log: nobody publishes with a configuration that leaves one out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import ConfigError
from eventlog.publisher.tables import JournalRow

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

WAYS: Final = (
    "Name the right file with --config, give a renamed output its former_names, keep its rows by"
    " `eventlog outputs pause NAME`, or give them up by `eventlog outputs forget NAME`;"
    " `eventlog run --look` shows documents and takes nothing."
)

Names = tuple[str, Sequence[str]]
"""An output, and what it was called before."""


def admit(connection: Connection, log: Log, outputs: Sequence[Names]) -> None:
    """Raise ConfigError if the log has a place none of these outputs has, unless it is paused.

    The rows of an interrupted conversion are reserved: a publisher does not pass them.
    """
    named = {name for output, former in outputs for name in (output, *former)}
    rows = [JournalRow.read(row) for row in log.rows(connection, log.query("outputs_read"))]
    missing = [row.name for row in rows if row.name not in named and row.paused is None and not row.is_conversion]
    if not missing:
        return
    known = ", ".join(sorted(output for output, _ in outputs)) or "no output"
    raise ConfigError(
        f"The event log {log.name} has a place for {', '.join(sorted(missing))}, and this configuration has {known}"
        " alone: those would never get what is published so.",
        hint=WAYS,
    )
