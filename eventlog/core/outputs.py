"""What can be set for every output, whatever its sink is: its name, and its policies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from eventlog.core.errors import ConfigError
from eventlog.core.limits import ColumnLimits
from eventlog.core.secrets import SecretSettings, visible

if TYPE_CHECKING:
    from eventlog.core.schema import Catalog, Table

NAME_RULE: Final = "1 to 100 letters, digits, blanks and . _ - and begins and ends with a letter or a digit"
"""What the name of an output, or of a policy, is made of."""

_named = re.compile(r"[^\W_](?:[\w .-]{0,98}[^\W_])?").fullmatch


PlaceKind = Literal["folder", "address", "topic", "table"]

Places = tuple[PlaceKind | None, str, tuple[str, ...]]
"""What kind of places an output has, how it is called, and the topics that have another use."""


class OutputKeys(SecretSettings, frozen=True, kw_only=True):
    """The format of an output, and what it is called, in status, metrics, notes and on the page.

    Without a name it is called after its place. `former_names` are those that notes of a batch in
    hand may still have. `policies` are shared ones by their names; `steps` of its own come behind
    them. An output that fails lags behind the others, which go on: by `max_behind_rows` at most,
    and for `max_behind_seconds`, where they are not 0. What happens then says `when_behind`: all
    others wait for it, or it is paused. `transactions` are told whole, or their changes in the
    order of their rows. `unmapped` says what becomes of a column that no policy and no mapping names.
    With `who` each change says which user of the database made it, and what the
    session said of who is behind it.
    """

    format: str = "xds"
    name: str = ""
    former_names: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    steps: tuple[Any, ...] = ()
    max_behind_rows: int = 0
    max_behind_seconds: float = 0
    when_behind: Literal["wait", "pause"] = "wait"
    transactions: Literal["mixed", "whole"] = "mixed"
    unmapped: Literal["send", "drop", "stop"] = "send"
    who: bool = False

    @property
    def mapped(self) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
        """List the tables mapped by its format, each with its columns; None where it needs no mapping."""
        return None

    @property
    def takes_all_values(self) -> bool:
        """Return True if the receiver takes several values of an attribute only all together."""
        return False

    def find_mapping_fault(self, table: Table, catalog: Catalog) -> str | None:
        """Find why no row of a table that is mapped could be written; None if nothing is in the way."""
        return None

    @property
    def sink(self) -> str:
        """Return the name of its sink."""
        return str(self.__struct_config__.tag or "")

    @property
    def limits(self) -> ColumnLimits | None:
        """Return limits of the target's columns beyond those of their types; None if there are none."""
        return None

    @property
    def places(self) -> Places:
        """Return the kind of its places, their name, and topics in other use."""
        return None, "this output", ()


def refuse_name(key: str, name: str) -> None:
    """Refuse a text that is no name, or could be taken for something else."""
    if _named(name) is None:
        raise ConfigError(f"{key} is {visible(name)!r}; a name has {NAME_RULE}.")
    if name == "decided":
        raise ConfigError(f"{key} is 'decided', which is the name of the note about a batch; choose another.")
