"""Whose a target is: the log that writes there, and the epoch of the publisher that took it over
last.

Law: who takes a target over writes its epoch there first, and every later write of a former holder
is refused by what it finds, or is made of files that the new holder has removed.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, OccupiedError
from eventlog.core.seams import Tenure


class Owner(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who took a target over last; a target without a log belongs to nobody yet."""

    log: str = ""
    name: str = ""
    epoch: int = 0


def take_over(owner: Owner, tenure: Tenure | None, target: str, way_out: str) -> Owner:
    """Take the target over; refuse another log, and a holder other than the latest.

    `target` and `way_out` are for the message: its name, and how a log gets its own target.
    """
    if tenure is None:
        # Whoever was writing there is stopped; the target stays its log's.
        return replace(owner, epoch=owner.epoch + 1)
    if owner.log and owner.log != tenure.log:
        raise ConfigError(
            f"{target} belongs to the {owner.name}; the {tenure.name} cannot write there.",
            hint=way_out,
        )
    if owner.epoch > tenure.epoch:
        raise make_replaced_error(target)
    return Owner(log=tenure.log, name=tenure.name, epoch=tenure.epoch)


def make_replaced_error(target: str) -> OccupiedError:
    """Say that another publisher has taken the target over."""
    hint = "This one writes nothing more there."
    return OccupiedError(f"Somebody else has taken {target} over.", hint=hint)
