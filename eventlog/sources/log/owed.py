"""What lagging outputs are owed: rows that the others have, and that wait in the log until these have them too.

An output that fails while others do not is left behind: it lags, and has a place of its own in the log. Law: what is
owed was settled by everybody who does not lag, so nobody who does is ever ahead of them; and a row gets its letter when
nobody is owed it any more, the worst that anybody said of it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.model import SEVERITY, Outcome, Outcomes, Reason, Status, exceptional, positions_of
from eventlog.sources.marks import (
    IN_HAND,
    LAGGING,
    OWED,
    PAUSED,
    RESUMED,
    RETRIED,
    SAID,
    Marks,
    Stretches,
    any_owed,
    as_text,
    note_name,
    notes_of,
    read_runs,
)
from eventlog.sources.notes import COUNTED, DECIDED, read_counted, write_counted
from eventlog.sql.log import id_list

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from eventlog.sql.log import Log

_KEPT: Final = frozenset({Status.WARNING, Status.ERROR, Status.FATAL})
"""What is remembered of a row until everybody has said something."""


What = tuple[Status, Reason, str | None]
"""What can be said of a row."""


class Said(Struct, frozen=True, array_like=True):
    """What was said of several rows alike."""

    status: Status
    reason: Reason
    note: str | None
    numbers: str

    @property
    def what(self) -> What:
        """Without the rows."""
        return self.status, self.reason, self.note


class LagState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a lagging output is: the rows that it has in hand, its notes about them, and how often rows were offered.

    `waited` says that the companion table tells of rows what they waited for.
    """

    in_hand: str = ""
    notes: Mapping[str, str] = {}
    attempts: Mapping[int, int] = {}
    waited: bool = False


class Resumed(Struct, frozen=True, array_like=True):
    """How far an output was behind when somebody resumed it: it may catch up from there."""

    rows: int = 0
    seconds: float = 0.0


def read_resumed(marks: Mapping[str, str], name: str) -> Resumed | None:
    """How far an output was behind when it was resumed; None once it was inside its bound, or where nobody has resumed it."""
    text = marks.get(f"{RESUMED}{name}")
    return None if text is None else msgspec.json.decode(text, type=Resumed)


def read_lag(marks: Mapping[str, str], name: str) -> LagState:
    """How far a lagging output is."""
    text = marks.get(f"{LAGGING}{name}")
    return msgspec.json.decode(text, type=LagState) if text else LagState()


def leave(connection: Connection, marks: Marks, outputs: Mapping[str, Stretches], outcomes: Sequence[Outcome]) -> None:
    """Leaves rows that are settled to those who lag and what they are owed, in the caller's transaction."""
    numbers = settled_numbers(outcomes)
    if not numbers:
        return
    saying = Saying(marks.get(connection, SAID))
    saying.forget(numbers)  # said of rows that somebody took out of the log, and published anew
    saying.begin(outcomes, numbers)
    write_said(connection, marks, saying)
    for name, owed in outputs.items():
        marks.set(connection, f"{OWED}{name}", (owed | numbers).text())


class Saying:
    """What those who are ahead have said of rows, as the mark `said` has it."""

    def __init__(self, text: str | None) -> None:
        read = msgspec.json.decode(text, type=list[Said]) if text else []
        self._said = {one.what: Stretches.read(one.numbers) for one in read}

    def begin(self, outcomes: Sequence[Outcome], among: Stretches) -> None:
        """Remembers what those who are ahead said of rows among these, where that is more than that they were published."""
        self._remember(
            [one for one in exceptional(outcomes) if one.status in _KEPT or one.reason is Reason.FILTERED], among
        )

    def add(self, outcomes: Sequence[Outcome], among: Stretches) -> None:
        """Remembers besides what one that lagged said of them; what it was told, no policy has left out everywhere."""
        mine = [one.position[0] for one in exceptional(outcomes) if one.reason is Reason.FILTERED]
        told = among - Stretches.of(mine)
        for what in [what for what in self._said if what[1] is Reason.FILTERED]:
            self._said[what] -= told
        self._said = {what: left for what, left in self._said.items() if left}
        self._remember([one for one in exceptional(outcomes) if one.status in _KEPT], among)

    def forget(self, numbers: Stretches) -> None:
        """Everybody has said something of these rows."""
        kept = {what: former - numbers for what, former in self._said.items()}
        self._said = {what: left for what, left in kept.items() if left}

    def merged(self, outcomes: Sequence[Outcome], among: Stretches) -> Outcomes:
        """The worst that anybody said of each row among these; that a policy left one out counts where all did so."""
        positions = [one for one in positions_of(outcomes) if one[0] in among]
        mine = {one.position: one for one in exceptional(outcomes) if one.position[0] in among}
        filtered = self._filtered()
        for position in [position for position, one in mine.items() if one.reason is Reason.FILTERED]:
            if position[0] not in filtered:
                del mine[position]
        for position in positions:
            for (status, reason, note), numbers in self._said.items():
                if reason is Reason.FILTERED or position[0] not in numbers:
                    continue
                if SEVERITY[status] > SEVERITY[mine[position].status if position in mine else Status.SUCCESS]:
                    mine[position] = Outcome(position=position, status=status, reason=reason, note=note)
        return Outcomes(positions, mine)

    def text(self) -> str | None:
        """As the mark has it; None where there is nothing to say."""
        found = [Said(*what, numbers.text()) for what, numbers in self._said.items()]
        return as_text(found) if found else None

    def _remember(self, outcomes: Iterable[Outcome], among: Stretches) -> None:
        found: dict[What, list[int]] = {}
        for one in outcomes:
            if one.position[0] in among:
                found.setdefault((one.status, one.reason, one.note), []).append(one.position[0])
        for what, numbers in found.items():
            self._said[what] = self._said.get(what, Stretches()) | Stretches.of(numbers)

    def _filtered(self) -> Stretches:
        return any_owed(numbers for (_, reason, _), numbers in self._said.items() if reason is Reason.FILTERED)


def settled_numbers(outcomes: Sequence[Outcome]) -> Stretches:
    """The record_ids of all rows that do not go on waiting."""
    waiting = {one.position for one in exceptional(outcomes) if one.status is Status.NEW}
    return Stretches.of(position[0] for position in positions_of(outcomes) if position not in waiting)


def waiting_only(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Those of rows that go on waiting."""
    return [one for one in exceptional(outcomes) if one.status is Status.NEW]


def write_said(connection: Connection, marks: Marks, saying: Saying) -> None:
    """Keeps what was said, in the caller's transaction."""
    text = saying.text()
    if text is None:
        marks.clear(connection, SAID)
    else:
        marks.set(connection, SAID, text)


def leave_behind(connection: Connection, log: Log, names: Mapping[str, Collection[str]]) -> None:
    """Lets these outputs lag from now on, each told with all names that its notes may have.

    What they have of the batch in hand, and of rows that wait for another attempt, they go on with by themselves.
    The others have it in hand still, and leave its rows to these when they settle it.
    """
    marks = Marks(log)
    found = marks.all(connection)
    notes = notes_of(found)
    for name, known_as in names.items():
        mine = {one: text for one, text in notes.items() if one in (DECIDED, COUNTED, *known_as)}
        state = LagState(in_hand=found.get(IN_HAND, ""), notes=mine, waited=RETRIED in found)
        marks.set(connection, f"{LAGGING}{name}", as_text(state))
        marks.set(connection, f"{OWED}{name}", "")
        for one in known_as:
            if one in notes:
                marks.clear(connection, note_name(one))
    if RETRIED in found:
        numbers = read_runs(found[RETRIED])
        connection.execute(log.query("attempts_sooner"), {"ids": id_list(numbers), "delay": 0.0})
        marks.clear(connection, RETRIED)


def rename(connection: Connection, log: Log, former: str, name: str) -> None:
    """Lets an output that lagged or was paused under a former name go on under the one that it has now."""
    marks = Marks(log)
    found = marks.all(connection)
    for kind in (OWED, LAGGING, PAUSED, RESUMED):
        if (text := found.get(f"{kind}{former}")) is not None:
            marks.set(connection, f"{kind}{name}", text)
            marks.clear(connection, f"{kind}{former}")


def join(connection: Connection, log: Log, name: str, *, with_batch: bool = False) -> bool:
    """Whether an output that lagged is in step again; it is not while it is owed anything or rows wait for it.

    `with_batch` lets it join with the batch with which it was left behind, as long as the others have not settled that.
    """
    marks = Marks(log)
    found = marks.all(connection)
    state = read_lag(found, name)
    if found.get(f"{OWED}{name}") or (state.in_hand and not (with_batch and state.in_hand == found.get(IN_HAND))):
        return False
    for one, text in state.notes.items() if state.in_hand else ():
        if one not in (DECIDED, COUNTED):
            marks.set(connection, note_name(one), text)
    mine = read_counted(state.notes.get(COUNTED)).told.get(name, {})
    ours = read_counted(notes_of(found).get(COUNTED))
    marks.clear(connection, note_name(COUNTED))
    for text in write_counted(replace(ours, told={**ours.told, name: mine})).values():
        marks.set(connection, note_name(COUNTED), text)
    for kind in (OWED, LAGGING, RESUMED):
        marks.clear(connection, f"{kind}{name}")
    return True
