"""The log's names: its table, its ten columns, and the companion tables called after it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from msgspec import Struct

from eventlog.core.errors import ConfigError, InstallError
from eventlog.core.table_names import read_name, write_name
from eventlog.version import VERSION

STANDARD = (
    "record_id",
    "status",
    "event_type",
    "event_time",
    "perpetrator",
    "table_name",
    "table_key",
    "column_name",
    "old_value",
    "new_value",
)
"""What the ten columns are for; every list of them keeps this order, also in configuration."""

TRANSACTION = "eventlog_transaction"
CONTEXT = "eventlog_context"
ORIGIN = "eventlog_origin"
"""Columns behind the ten in logs of ours alone: the transaction that wrote the row, what its session said
of who is behind it, and where a stream had it.
"""

NEW_ORDER = (
    "record_id",
    "table_key",
    "status",
    "event_type",
    "event_time",
    "perpetrator",
    "table_name",
    "column_name",
    "old_value",
    "new_value",
)
"""Where the columns stand in the table since version 3.5.1 of the product."""

OLD_ORDER = STANDARD
"""Where they stand in versions 2.0 and 3.0."""


NAME_BYTES = 30
"""Bytes of a companion's name on every database: Oracle takes no more before 12.2, and a name must
not depend on the server.
"""
KEY_ENDING = "_pkc"
"""What Alembic puts behind the version table's name to call its key."""
DIGITS = 8
"""Digits of the hash that keeps shortened names apart."""


NAME_CHARACTERS = 200
"""Characters of an output's name, and of an object's."""


def with_hash(name: str, longest: int) -> str:
    """Return the name, shortened with a hash of all of it if too long."""
    if len(name.encode()) <= longest:
        return name
    # A character of several bytes that is cut is left out.
    beginning = name.encode()[: longest - DIGITS - 1].decode(errors="ignore")
    return f"{beginning}_{hash_name(name)}"


def hash_name(name: str) -> str:
    """Return digits of a hash over the name."""
    return hashlib.sha256(name.encode()).hexdigest()[:DIGITS]


class LogNames(Struct, frozen=True, kw_only=True):
    """One event log: where it lives and what its columns are called, in the order of STANDARD."""

    table: str = "event_log"
    schema: str | None = None
    bare: bool = False
    """People name it without its schema."""
    near: bool = False
    """It is in the schema of tables that are named without one."""
    columns: tuple[str, ...] = STANDARD
    clock: str = "utc"
    """Whose time event_time is: utc, database, an offset, or a zone such as Asia/Tokyo."""
    sequence: str | None = None
    """Where record_ids come from in old databases, whose tables do not number their rows."""
    transaction: str | None = None
    """The column that says which transaction wrote a row, where the log has one."""
    context: str | None = None
    """The column that says what a row's session said of who is behind it, where the log has one."""
    origin: str | None = None
    """The column that says where a captured stream had a row, in the log of one."""

    @property
    def outcomes(self) -> str:
        """Return the table with a row for each record_id with reason, attempts, document or hold."""
        return self._beside("_outcome")

    @property
    def marks(self) -> str:
        """Return the table of state that survives a crash, by name."""
        return self._beside("_mark")

    @property
    def history(self) -> str:
        """Return the table of versions of captured tables, as the log's owner tracked them."""
        return self._beside("_schema")

    @property
    def seen(self) -> str:
        """Return the table of shapes a publisher saw between two versions."""
        return self._beside("_seen")

    @property
    def journal(self) -> dict[str, str]:
        """Return the tables of the journal, by the names in queries."""
        # A table is called after one of its rows, a query's hole after all of them.
        endings = {"batches": "batch", "outputs": "output", "planned": "planned"}
        endings |= {"parked": "parked", "holds": "hold", "answers": "answer", "associations": "association"}
        return {hole: self._beside(f"_{ending}") for hole, ending in endings.items()}

    @property
    def companions(self) -> dict[str, str]:
        """Map all tables beside the log, except Alembic's, by their names in queries.

        The registry's is created first and dropped last, for it has the log's owner.
        """
        others = {"marks": self.marks, "outcomes": self.outcomes, "history": self.history, "seen": self.seen}
        return {**self.registry, **others, **self.journal}

    @property
    def registry(self) -> dict[str, str]:
        """Return the tables only the log's owner writes, by the names in queries.

        They record how the log was installed, the tracked tables, their triggers and dependencies.
        """
        endings = {"setup": "setup", "tracked": "tracked", "triggers": "trigger"}
        endings |= {"relations": "relation", "columns": "column"}
        return {hole: self._beside(f"_{ending}") for hole, ending in endings.items()}

    @property
    def owners(self) -> frozenset[str]:
        """Name the tables only the log's owner writes: they decide on running, reading and
        publishing.
        """
        return frozenset({self.history, self.version, *self.registry.values()})

    @property
    def version(self) -> str:
        """Return Alembic's version table, one a log, so that several logs can share a database."""
        return self._beside("_version", NAME_BYTES - len(KEY_ENDING))

    def _beside(self, ending: str, longest: int = NAME_BYTES) -> str:
        """Append an ending to the log's name, in upper case if the name is: databases report it so."""
        name = with_hash(self.table, longest - len(ending)) + ending
        return name.upper() if self.table.isupper() else name

    @property
    def sessions(self) -> str:
        """Name the table of people behind changes, for databases without session variables."""
        return self._beside("_context")

    @property
    def beside(self) -> tuple[str, ...]:
        """Name the tables beside every log."""
        return self.version, *self.companions.values()

    @property
    def own(self) -> tuple[str, ...]:
        """Name eventlog's own tables: the log, then those beside it, where they are."""
        return self.table, *self.beside, self.sessions

    @property
    def whole(self) -> str:
        """Write the log's name for people: with its schema, if it has one."""
        return write_name(None if self.bare else self.schema, self.table)

    def column(self, standard: str) -> str:
        """Return the actual name of a column of STANDARD."""
        return self.columns[STANDARD.index(standard)]


NEWEST_MIGRATION = "0001"
"""The migration that this program works with; a log that is at a later one was upgraded by a newer
program.
"""


def refuse_others(names: LogNames, migration: str | None) -> None:
    """Raise InstallError if the log is at another migration than this program needs."""
    refuse_newer(names, migration)
    if migration is not None and migration < NEWEST_MIGRATION:
        message = f"The log {names.whole} is at migration {migration}; eventlog {VERSION} needs {NEWEST_MIGRATION}."
        raise InstallError(message, hint=f"Run `eventlog upgrade{log_option(names)}`.")


def refuse_newer(names: LogNames, migration: str | None) -> None:
    """Raise InstallError if the log is at a newer migration than this program knows."""
    if migration is None or migration <= NEWEST_MIGRATION:
        return
    known = f"eventlog {VERSION} knows those up to {NEWEST_MIGRATION}"
    message = f"The log {names.whole} is at migration {migration}; {known}."
    back = f"`eventlog upgrade --to {NEWEST_MIGRATION}` goes back"
    hint = f"Run the eventlog that upgraded it; with that one {back}."
    raise InstallError(message, hint=hint)


def names_wanted(wanted: str | Sequence[str]) -> tuple[str, ...]:
    """Name the columns of a new log, in the order of STANDARD."""
    if isinstance(wanted, str):
        return STANDARD
    check_ten(wanted)
    # Standard names say themselves what they are for, in whatever order somebody lists them.
    if {name.casefold() for name in wanted} == set(STANDARD):
        return STANDARD
    return tuple(wanted)


def check_ten(wanted: Sequence[str]) -> None:
    """Raise ConfigError if a list of columns has the wrong length."""
    if len(wanted) != len(STANDARD):
        order = ", ".join(STANDARD)
        raise ConfigError(f"columns lists {len(wanted)} names; it takes ten, in the order {order}.")


def read_log_name(text: str) -> LogNames:
    """Reads `event_log` or `indirect.event_log`; ConfigError when there is no name."""
    schema, table = read_name(text)
    if not table.strip() or (text.startswith(".") or (schema and not schema.strip())):
        hint = "It is written as event_log or app.event_log."
        raise ConfigError(f"{text!r} is no name of a log table.", hint=hint)
    return LogNames(table=table, schema=schema or None)


def no_log(names: LogNames) -> InstallError:
    """Make the error for a missing log."""
    return InstallError(
        f"There is no event log {names.whole} in this database.",
        hint=f"`eventlog install{log_option(names)}` makes it.",
    )


def log_option(names: LogNames) -> str:
    """Write a command's option for this log."""
    return "" if names.whole == LogNames().table else f" --log {names.whole}"
