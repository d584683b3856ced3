"""The options of the data source `eventlog`, read from the texts that Spark hands over."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.sql.clocks import DATABASE, UTC, zone_of
from eventlog.sql.names import CONTEXT, TRANSACTION, LogNames, read_log_name

if TYPE_CHECKING:
    from eventlog.convert.settings import LogInput

KNOWN: Final = (
    *("url", "log", "columns", "clock", "status", "partitions", "snapshot"),
    *("rows", "start", "patience", "pushdown", "transactions", "context", "event_time"),
)
_number = re.compile(r"\d{1,18}").fullmatch


class Chosen(Struct, frozen=True, kw_only=True):
    """The rows that are read: numbers from `first` to `last`, times from `since` to `upto`, letters
    and tables; None is all.
    """

    first: int | None = None
    last: int | None = None
    statuses: tuple[str, ...] | None = None
    tables: tuple[str, ...] | None = None
    since: str | None = None
    upto: str | None = None


class NumberRange(Struct, frozen=True, kw_only=True):
    """Rows whose numbers lie between two numbers, both of them included, as one snapshot sees
    them.
    """

    first: int
    last: int
    snapshot: str | None = None


class LogOptions(Struct, frozen=True, kw_only=True):
    """What is read, and in how many pieces. `columns` and `clock` are as in the configuration."""

    url: str
    log: str = "event_log"
    columns: str | tuple[str, ...] = "auto"
    clock: str = UTC
    status: str = ""
    partitions: int = 8
    snapshot: str | None = None
    rows: int = 200_000
    start: int = 0
    patience: int = 120
    pushdown: bool = True
    transactions: bool = False
    context: bool = False
    event_time: str = "timestamp"
    chosen: Chosen = Chosen()

    @property
    def more(self) -> tuple[str, ...]:
        """Name the columns that are asked for beside the ten."""
        asked = {TRANSACTION: self.transactions, CONTEXT: self.context}
        return tuple(name for name, wanted in asked.items() if wanted)

    @property
    def names(self) -> LogNames:
        return replace(read_log_name(self.log), clock=self.clock)


def options_of(source: LogInput) -> LogOptions:
    """Make the data source's options for a conversion's log."""
    return LogOptions(
        url=source.url,
        log=source.log,
        columns=source.columns,
        clock=source.clock,
        status=source.statuses,
    )


def read_options(options: Mapping[str, str]) -> LogOptions:
    """Read the options from Spark's texts; ConfigError names a wrong one."""
    # To Spark the names of options are the same in capitals.
    given = {name.lower(): text for name, text in options.items()}
    unknown = sorted(given.keys() - set(KNOWN))
    if unknown:
        from eventlog.core.suggest import did_you_mean

        raise ConfigError(f"There is no option {unknown[0]}. {did_you_mean(unknown[0], KNOWN)}")
    if "url" not in given:
        raise ConfigError("The option url is missing; it names the database, as postgresql+psycopg://user@host/name.")
    columns: str | tuple[str, ...] = given.get("columns", "auto")
    if isinstance(columns, str) and "," in columns:
        columns = tuple(name.strip() for name in columns.split(","))
    clock = given.get("clock", UTC)
    if clock != DATABASE:
        zone_of(clock, "The option clock")
    return LogOptions(
        url=given["url"],
        log=given.get("log", "event_log"),
        columns=columns,
        clock=clock,
        status=given.get("status", ""),
        partitions=max(1, _count(given, "partitions", 8)),
        snapshot=given.get("snapshot"),
        rows=max(1, _count(given, "rows", 200_000)),
        start=_count(given, "start", 0),
        patience=_count(given, "patience", 120),
        pushdown=_is_on(given, "pushdown", "true"),
        transactions=_is_on(given, "transactions", "false"),
        context=_is_on(given, "context", "false"),
        event_time=_event_time(given),
    )


def _event_time(given: Mapping[str, str]) -> str:
    text = given.get("event_time", "timestamp").strip().lower()
    if text in ("timestamp", "text"):
        return text
    raise ConfigError(f"The option event_time is {text!r}; it must be timestamp or text.")


def _is_on(given: Mapping[str, str], name: str, default: str) -> bool:
    text = given.get(name, default).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"The option {name} is {text!r}; it must be true or false.")
    return text == "true"


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default)).strip()
    if not _number(text):
        raise ConfigError(f"The option {name} is {text!r}; it must be a whole number.")
    return int(text)
