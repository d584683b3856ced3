"""The settings of change tables in a database."""

from __future__ import annotations

from typing import Literal

from eventlog.core.errors import ConfigError
from eventlog.core.limits import ColumnLimits
from eventlog.core.outputs import OutputKeys

ControlTable = Literal["status", "history", "suspended_tables", "apply_exceptions"]


class DatabaseSettings(OutputKeys, frozen=True, kw_only=True):
    """Where change tables stand.

    `task` names the position there: two publishers into one schema have two.

    `ddl` says whether change tables follow their sources; `on_refused` whether a row that the
    target does not take is set aside, or ends the work; `index` whether new change tables get an
    index on change_seq. `control_tables` are those of the product's that are kept for operators,
    besides the two that there always are.
    """

    url: str
    schema: str | None = None
    task: str = "eventlog"
    ddl: Literal["apply", "ignore"] = "apply"
    on_refused: Literal["set-aside", "stop"] = "set-aside"
    index: bool = True
    control_tables: tuple[ControlTable, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < len(self.task) <= 128:
            raise ConfigError("output.task must have between 1 and 128 characters.")

    @property
    def limits(self) -> ColumnLimits:
        """Return what columns of this database can hold."""
        from eventlog.sql.connect import read_url
        from eventlog.sql.dialect import dialect_of

        return dialect_of(read_url(self.url)).types.limits
