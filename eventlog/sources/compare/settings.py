"""What can be set about publishing by comparison."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from eventlog.core.errors import ConfigError
from eventlog.core.secrets import SecretSettings
from eventlog.sql.dialect import dialect_of

MOST_SECONDS: Final = 31 * 86_400
MOST_ROWS: Final = 1_000_000_000


class QuerySettings(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A query that is compared as a table is: its key, and the types of its columns. Others are texts."""

    sql: str
    key: tuple[str, ...]
    types: Mapping[str, str] = {}

    def __post_init__(self) -> None:
        if not self.key:
            raise ConfigError(
                "A query of source.compare.queries has no key.",
                hint="Name the columns that no two rows share in its key.",
            )


class CompareSettings(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tables are compared with `state`, which has the rows that were published: a file, or a database by its URL. The file
    `marks` keeps the position; a database has that too.

    `start` says what the first cycle publishes of a table: everything, or nothing that is there already. `on_lost` says
    what happens where the state is gone, or a table has other columns: publishing stops; all rows that differ, or whose
    state is gone, are published (resync); or nothing of what is there already is (future-only). `restart` says what each
    start publishes of a table that has a state: what changed since; that, and every row once more (resync); or nothing
    that is there already (future-only).
    A full cycle takes place every `every` seconds, 0 is at each poll. `growing` names columns that only grow, by table, such as
    `updated_at`: between full cycles, at each poll, only rows are compared whose value there is not below the last one.
    Deletes are found by full cycles. `queries` are compared like tables, under their names, in full cycles; where there
    are some, only those tables are compared that `source.tables` names. `rows_per_second` and `between`, such as 22:00-05:00, hold reading back.
    """

    state: str = "compare-state.db"
    marks: str = ""
    start: Literal["everything", "future-only"] = "everything"
    restart: Literal["changes", "resync", "future-only"] = "changes"
    on_lost: Literal["stop", "resync", "future-only"] = "stop"
    every: float = 0
    growing: Mapping[str, str] = {}
    queries: Mapping[str, QuerySettings] = {}
    rows_per_second: float = 0
    between: str = ""

    @property
    def position(self) -> str:
        """Return the file or URL of the position."""
        return self.state if "://" in self.state else self.marks or "compare-marks.json"

    def __post_init__(self) -> None:
        if "://" in self.state and dialect_of(self.state).embedded:
            raise ConfigError("source.compare.state is the URL of a file.", hint="Write its path alone.")
        if "://" in self.state and self.marks:
            raise ConfigError(
                "source.compare.marks names a file, and the state is in a database.",
                hint="Leave it out: that database keeps the position too.",
            )
        bounds = {"every": MOST_SECONDS, "rows_per_second": MOST_ROWS}
        for name, most in bounds.items():
            if not 0 <= getattr(self, name) <= most:
                raise ConfigError(f"source.compare.{name} is {getattr(self, name)}; it must be between 0 and {most}.")
