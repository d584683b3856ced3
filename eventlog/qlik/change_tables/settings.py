"""What can be chosen about change tables: names, header columns, before images, the mask's form,
partitions, tables.
"""

from __future__ import annotations

import datetime as dt
from typing import Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.seams import OnValue

WHO_HEADERS = ("user", "context")
"""The header columns behind these that say who is behind a change, where the output asks for that."""

Header = Literal[
    "change_seq", "change_oper", "change_mask", "stream_position", "operation", "transaction_id", "timestamp"
]
HEADERS: tuple[Header, ...] = (
    "change_seq",
    "change_oper",
    "change_mask",
    "stream_position",
    "operation",
    "transaction_id",
    "timestamp",
)
"""The header columns, in the only order that they have."""


class ChangeTableSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How change tables look. `partition_every` is in minutes, 0 for no partitions.

    No `tables` means all of them.

    `on_value` says what becomes of a value that its column cannot hold.
    """

    prefix: str = "header__"
    suffix: str = "__ct"
    headers: tuple[Header, ...] = HEADERS
    before_image: bool = True
    mask: Literal["binary", "hex"] = "binary"
    partition_every: int = 0
    partition_base: str = "1970-01-01T00:00:00"
    tables: tuple[str, ...] = ()
    on_value: OnValue = "omit"

    def __post_init__(self) -> None:
        # 527,040 minutes are 366 days.
        if not 0 <= self.partition_every <= 527_040:
            raise ConfigError(
                f"change_tables.partition_every is {self.partition_every}; it must be between 0 and 527040."
            )
        if not self.suffix:
            raise ConfigError("change_tables.suffix is empty; a change table cannot be called as its table is.")
        if len(set(self.headers)) < len(self.headers):
            doubled = next(name for name in self.headers if self.headers.count(name) > 1)
            raise ConfigError(f"change_tables.headers names {doubled} twice; leave one of them out.")
        # So that a base that is no time is refused when settings are read, not with the first row.
        self.base()

    def base(self) -> dt.datetime:
        """Return the time from which partitions are counted."""
        try:
            base = dt.datetime.fromisoformat(self.partition_base)
        except ValueError:
            problem = f"change_tables.partition_base is {self.partition_base!r}; it is written as 1970-01-01T00:00:00."
            raise ConfigError(problem) from None
        # Times in change_seq are in UTC and without a zone.
        if base.tzinfo is None:
            return base
        return base.astimezone(dt.UTC).replace(tzinfo=None)

    @property
    def present(self) -> tuple[Header, ...]:
        """List the chosen header columns in their order."""
        return tuple([name for name in HEADERS if name in self.headers])
