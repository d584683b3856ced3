"""Where the journal has each output, and where it has one row: for those who look, and for no publisher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from eventlog.core.model import Reason
from eventlog.publisher.memory import read_memory
from eventlog.publisher.tables import NEVER
from eventlog.publisher.take import BEHIND
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Connection


class WaitingFor(Struct, frozen=True, kw_only=True):
    """What an output waits for: so many rows, the first of them, and when the first may go, in milliseconds since 1970."""

    reason: str
    rows: int
    first: int
    due: int | None = None


class OutputPlace(Struct, frozen=True, kw_only=True):
    """Where an output is: how many rows it has ahead of it, how many may be on their way to it, and what waits for what.

    `paused` says since when, by whom and why; `warning` what was found about its target.
    """

    name: str
    position: int
    plan: str
    ahead: int
    on_the_way: int
    waits: Sequence[WaitingFor] = ()
    paused: str | None = None
    warning: str | None = None

    @property
    def waiting(self) -> int:
        """Rows that are parked for it."""
        return sum(one.rows for one in self.waits)

    @property
    def kept(self) -> int:
        """Rows of the journal that it lacks."""
        return self.ahead + self.on_the_way + self.waiting


def read_places(connection: Connection, log: Log) -> dict[str, OutputPlace]:
    """Where every output is. One pass over the parked rows, and one read of each other table."""
    memory = read_memory(connection, log, "", seen=False)
    waits: dict[str, list[WaitingFor]] = {}
    for output, reason, rows, first, due in log.rows(connection, log.query("parked_reasons")):
        soonest = None if due is None or int(due) >= NEVER else int(due)
        one = WaitingFor(reason=str(reason), rows=int(rows), first=int(first), due=soonest)
        waits.setdefault(str(output), []).append(one)
    return {
        name: OutputPlace(
            name=name,
            position=row.position,
            plan=row.plan,
            ahead=sum(len(one.records) for number, one in memory.batches.items() if number > row.position),
            on_the_way=len(memory.planned.get(name, ())),
            waits=waits.get(name, ()),
            paused=row.paused,
            warning=row.warning,
        )
        for name, row in memory.outputs.items()
    }


Place = Literal["ahead", "parked", "planned", "over", "unsealed"]
"""Where a waiting row is for one output; `unsealed` are rows that no publisher has read yet."""


class RowPlace(Struct, frozen=True, kw_only=True):
    """Where a waiting row is for one output.

    Of a parked one `reason` says why, `attempts` how often it was offered, `due` when it may go, and `behind` after
    which row of its object; of one that is over, `reason` and `note` are what the output has said of it.
    """

    output: str
    place: Place
    reason: str | None = None
    note: str | None = None
    attempts: int = 0
    due: int | None = None
    behind: int | None = None
    behind_held: bool = False
    paused: bool = False

    @property
    def sentence(self) -> str:
        """What it waits for, in words that begin a sentence."""
        if self.place == "parked":
            return self._parked
        if self.place == "planned":
            return "It is being delivered."
        if self.place == "over":
            return f"It is over: {self.reason}." if self.reason else "It is there."
        return "It waits until somebody resumes the output." if self.paused else "It waits."

    @property
    def _parked(self) -> str:
        if self.behind is not None:
            why = "is held" if self.behind_held else "is offered again first"
            return f"It waits behind row {self.behind} of the same object, which {why}."
        if self.reason == Reason.HELD:
            return "It waits until somebody releases it."
        if self.attempts:
            return f"It is offered again after {self.attempts} attempt{'s' * (self.attempts != 1)}."
        return "It waits." if self.reason in (None, BEHIND) else f"It waits: {self.reason}."


def places_of(connection: Connection, log: Log, record: int) -> list[RowPlace]:
    """Where a waiting row is for each output: one read of each table, of the parked rows those of its number."""
    memory = read_memory(connection, log, "", seen=False)
    parked = _parked(log.rows(connection, log.query("parked_row"), {"record_id": record}))
    said = {
        str(output): (str(reason), note)
        for _, output, _, reason, note in log.rows(
            connection, log.query("said_read"), {"first": record, "last": record}
        )
    }
    sealed = bool(parked or said) or record in memory.taken
    found: list[RowPlace] = []
    for name, row in memory.outputs.items():
        paused = row.paused is not None
        if name in parked:
            found.append(parked[name])
        elif record in memory.planned.get(name, ()):
            found.append(RowPlace(output=name, place="planned"))
        elif not sealed:
            found.append(RowPlace(output=name, place="unsealed", paused=paused))
        elif any(number > row.position and record in one.records for number, one in memory.batches.items()):
            found.append(RowPlace(output=name, place="ahead", paused=paused))
        else:
            reason, note = said.get(name, (None, None))
            found.append(RowPlace(output=name, place="over", reason=reason, note=note))
    return found


def _parked(rows: Sequence[Sequence[Any]]) -> Mapping[str, RowPlace]:
    """The row as outputs have it parked. Only the first of the rows before it counts, or the first that is held."""
    found: dict[str, RowPlace] = {}
    for output, reason, note, attempts, due, ahead, _, ahead_due in rows:
        former = found.get(str(output))
        is_held = ahead_due is not None and int(ahead_due) >= NEVER
        if former is not None and (former.behind_held or not is_held):
            continue
        found[str(output)] = RowPlace(
            output=str(output),
            place="parked",
            reason=str(reason),
            note=note,
            attempts=int(attempts),
            due=None if due is None or int(due) >= NEVER else int(due),
            behind=None if ahead is None else int(ahead),
            behind_held=is_held,
        )
    return found


def said_of_places(connection: Connection, log: Log, record: int) -> Iterator[str]:
    """Why a row waits, in sentences: one where it waits for the same thing everywhere, else one for each output."""
    held = log.rows(connection, log.query("hold_row"), {"record_id": record})
    if held:
        yield f"It is {held[0][0]}" if held[0][0] else "Somebody holds it."
    places = [one for one in places_of(connection, log, record) if one.place != "over" or one.reason]
    sentences = {one.sentence for one in places}
    if len(sentences) == 1:
        yield sentences.pop()
        return
    for one in places:
        yield f"{one.output}: {one.sentence}"
