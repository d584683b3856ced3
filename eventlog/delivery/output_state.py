"""How each output stands: what it took last and what went wrong there, in a mark of the log for others to see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import Position
from eventlog.core.secrets import masked, shown

if TYPE_CHECKING:
    from eventlog.core.errors import MachineError
    from eventlog.delivery.output import Delivery


class Standing(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The last document that an output took with its last position, and the last error; times are seconds since 1970."""

    document: str = ""
    position: Position | None = None
    at: float | None = None
    error: str | None = None
    failed_at: float | None = None


Standings = Mapping[str, Standing]
"""How the outputs stand, by the names that their notes have."""


def stands(former: Standing, delivery: Delivery, error: MachineError | None, now: float) -> Standing:
    """How an output stands after its share of a batch, whether it ended well or not."""
    new = former
    if delivery.taken is not None:
        document, position = delivery.taken
        new = replace(new, document=document, position=position, at=now)
    wrong = delivery.complaint if error is None else str(error)
    return new if wrong is None else replace(new, error=shown(wrong), failed_at=now)


def newest(former: Standings, present: Standings) -> dict[str, Standing]:
    """How they stand now; what nobody has seen of an output since is as it was."""
    return {**former, **{name: _over(former.get(name, Standing()), mine) for name, mine in present.items()}}


def read_standings(text: str | None) -> dict[str, Standing]:
    """What `write_standings` wrote; what cannot be read is forgotten, for nothing depends on it.

    Versions before this one have written passwords of URLs into names and errors.
    """
    try:
        found = msgspec.json.decode(text or "{}", type=dict[str, Standing])
    except msgspec.DecodeError:
        return {}
    return {masked(name): replace(one, error=one.error and masked(one.error)) for name, one in found.items()}


def write_standings(found: Standings) -> str:
    """How the outputs stand, as text."""
    return msgspec.json.encode(found).decode()


def _over(former: Standing, present: Standing) -> Standing:
    document = former if present.at is None else present
    failure = former if present.failed_at is None else present
    return Standing(
        document=document.document,
        position=document.position,
        at=document.at,
        error=failure.error,
        failed_at=failure.failed_at,
    )
