"""The rows of the journal's tables, as values: outputs, documents that were planned, rows that wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from eventlog.core.errors import DataError
from eventlog.core.model import CutTransaction, Document, Outcome, Position
from eventlog.sources.marks import Stretches

FAR: Final = 2**62
"""The time of a row that goes when somebody releases it."""

T = TypeVar("T")


class JournalRow(Struct, frozen=True, kw_only=True):
    """One output. `has` is the last plan that its target is known to have, `told` how much of each unfinished
    transaction it was told; `warning` is what was found about the target that somebody should know.
    """

    name: str
    position: int
    plans: int = 0
    has: str = ""
    paused: str | None = None
    told: Mapping[int, int] = {}
    warning: str | None = None

    @classmethod
    def read(cls, row: Sequence[Any]) -> JournalRow:
        name, position, plans, has, paused, told, warning = row
        return cls(
            name=str(name),
            position=int(position),
            plans=int(plans),
            has=has or "",
            paused=paused,
            told={} if told is None else _decoded(told, dict[int, int]),
            warning=warning,
        )

    def written(self, *columns: str) -> dict[str, Any]:
        """Some of its columns as the table has them; nothing is an empty text there, which Oracle would not keep."""
        values: dict[str, Any] = {
            "name": self.name,
            "position": self.position,
            "plans": self.plans,
            "has": self.has or None,
            "told": _encoded(self.told) if self.told else None,
        }
        return {column: values[column] for column in columns}


class Parked(Struct, frozen=True, kw_only=True):
    """A row that waits for one output. Without `due` it waits behind an earlier row of its object."""

    output: str
    record: int
    object: str
    reason: str
    note: str | None = None
    attempts: int = 0
    due: int | None = None

    def written(self) -> dict[str, Any]:
        """As the table has it."""
        return {
            "output": self.output,
            "record_id": self.record,
            "object": self.object,
            "reason": self.reason,
            "note": self.note or None,
            "attempts": self.attempts,
            "due": self.due,
        }


class Planned(Struct, frozen=True, kw_only=True):
    """A document that may be on its way: its plan and place in it, the rows behind it, and what ends with them.

    `objects` are those that it speaks of, with the rows of each; `records` are those of them that still wait for what
    becomes of it, for somebody may have taken rows away since. `covers`, `body` and `route` are kept where the
    target cannot be asked what it has: then the document goes again as it is.
    """

    plan: str
    place: int
    document: str
    objects: Mapping[str, Sequence[int]]
    records: Stretches
    said: Mapping[int, Outcome] = {}
    cut: tuple[CutTransaction, ...] = ()
    covers: Mapping[str, tuple[Position, ...]] | None = None
    body: str | None = None
    route: str = ""
    attempts: int = 0
    due: int = 0

    def object_of(self, record: int) -> str:
        """The object that a row of it speaks of."""
        return next(name for name, records in self.objects.items() if record in records)

    def again(self) -> Document:
        """The document as it was."""
        return Document(
            id=self.document, body=(self.body or "").encode(), covers=self.covers or {}, route=self.route
        )


def written_planned(output: str, one: Planned) -> dict[str, Any]:
    """A planned document as the table has it."""
    return {
        "output": output,
        "plan": one.plan,
        "place": one.place,
        "document": one.document,
        "objects": _encoded(one.objects),
        "records": _encoded(one.records.parts),
        "said": _encoded(list(one.said.values())) if one.said else None,
        "cut": _encoded(one.cut) if one.cut else None,
        "covers": None if one.covers is None else _encoded(one.covers),
        "body": one.body or None,
        "route": one.route or None,
        "attempts": one.attempts,
    }


def read_planned(row: Sequence[Any]) -> Planned:
    """A planned document as `planned_read` finds it."""
    plan, place, document, objects, records, said, cut, covers, body, route, attempts, due = row
    outcomes = [] if said is None else _decoded(said, list[Outcome])
    return Planned(
        plan=str(plan),
        place=int(place),
        document=str(document),
        objects=_decoded(objects, dict[str, list[int]]),
        records=Stretches(_decoded(records, list[tuple[int, int]])),
        said={outcome.position[0]: outcome for outcome in outcomes},
        cut=() if cut is None else _decoded(cut, tuple[CutTransaction, ...]),
        covers=None if covers is None else _decoded(covers, dict[str, tuple[Position, ...]]),
        body=body,
        route=route or "",
        attempts=int(attempts),
        due=int(due),
    )


def _encoded(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _decoded(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        hint = "It stands in the journal's tables beside the log; `eventlog check` says where."
        raise DataError(f"The journal cannot be read: {error}.", hint=hint) from error
