"""What somebody asks of `eventlog track`, and how that is put over what a class is tracked with."""

from __future__ import annotations

import shlex
from typing import Final

from msgspec import Struct

from eventlog.core.schema import WHOLE_ROW
from eventlog.tracked.options import Style, TriggerOptions


class TrackRequest(Struct, frozen=True, kw_only=True):
    """What somebody asks for now; None keeps what a class was tracked with, `reset` keeps nothing
    of it.
    """

    style: Style | None = None
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    children: tuple[str, ...] | None = None
    key: tuple[str, ...] | None = None
    when: str | None = None
    rows: bool | None = None
    always: bool | None = None
    follow_ddl: bool | None = None
    reset: bool = False

    def over(self, kept: TriggerOptions) -> TriggerOptions:
        """Return a class's former options with these changes; an empty condition removes the
        condition.
        """
        options = {name: getattr(self, name) for name in OPTIONS}
        options = {name: getattr(kept, name) if asked is None else asked for name, asked in options.items()}
        # Without a key nobody finds the row again, so --whole-row alone means the one style that
        # needs no second look.
        if self.key == (WHOLE_ROW,) and self.style is None:
            options["style"] = Style.IMAGE
        return TriggerOptions(**options | {"when": options["when"] or None})


OPTIONS: Final = tuple(name for name in TrackRequest.__struct_fields__ if name != "reset")
"""What somebody may ask for; the other options depend on the table."""


def words(options: TriggerOptions) -> str:
    """Write the options as `eventlog track` takes them."""
    arguments = ["--events", options.style.value]
    lists = {
        "--columns": options.columns,
        "--exclude": options.exclude,
        "--child": options.children,
    }
    if not options.whole_row:
        lists["--key"] = options.key
    for option, names in lists.items():
        if names:
            arguments += [option, ",".join(names)]
    if options.when:
        arguments += ["--when", options.when]
    flags = {
        "--whole-row": options.whole_row,
        "--row-triggers": options.rows,
        "--always": options.always,
        "--follow-ddl": options.follow_ddl,
    }
    return shlex.join([*arguments, *(flag for flag, given in flags.items() if given)])
