"""A model of delivery, small enough to look at every state: two publishers, one log, one target, any interleaving.

Each step is what is atomic in the program: a transaction on the log, one on the target, one rename, one request. Between
two steps a publisher may be killed, or frozen for as long as one likes, while the other one takes the lock over; rows
commit late, are held and released, and are requeued. `docs/decisions/0055-the-journal.md` tells the same in words.

`Rules` switches single rules of the protocol off: then the search must find what goes wrong, or it proves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

Target = Literal["transaction", "folder", "receiver"]
OBJECTS: dict[Target, str] = {"transaction": "AAB", "folder": "AA", "receiver": "AA"}
"""The object of each row; rows of one object commit in their order, all others as they like."""
BATCH = 2


class Rules(NamedTuple):
    """The rules of the protocol."""

    open_under_lock: bool = True
    refuse_old_epochs: bool = True
    by_plan: bool = True
    plan_is_noted: bool = True
    hide_then_confirm: bool = True
    sweep: bool = True
    settle_under_lock: bool = True
    notes_outlive_holds: bool = True


ALL_RULES = Rules()


class Limits(NamedTuple):
    """How often each of these may happen in one history."""

    takeovers: int = 2
    kills: int = 1
    requeues: int = 1
    holds: int = 0


FEW = Limits()


class Note(NamedTuple):
    """What the log knows of the batch in hand: a plan, its rows, the number before the first, and what went before.

    `away` are rows that were held after they were planned, with the plan under which they may have gone out.
    """

    plan: int
    rows: tuple[int, ...]
    after: int
    done: tuple[int, ...]
    away: tuple[tuple[int, int], ...] = ()


class Publisher(NamedTuple):
    """One process: where it is, and what it remembers; all of it is gone when it is killed."""

    at: str = "standby"
    epoch: int = 0
    last: int = 0
    batch: tuple[int, ...] = ()
    note: Note | None = None
    shown: int = 0


class Place(NamedTuple):
    """The target: who has it, the last plan and number, what a reader finds, and what is hidden."""

    epoch: int = 0
    plan: int = 0
    last: int = 0
    found: tuple[tuple[int, int], ...] = ()
    """Rows with their numbers, in the order in which they came."""
    taken: frozenset[tuple[int, int]] = frozenset()
    """What a receiver remembers: plan and row."""
    hidden: frozenset[tuple[int, int]] = frozenset()
    """Publisher and row of files without a name."""


class State(NamedTuple):
    """Everything."""

    committed: frozenset[int] = frozenset()
    settled: frozenset[int] = frozenset()
    asked: tuple[int, ...] = ()
    """How often each row must have come in the end: once more after each requeue."""
    held: frozenset[int] = frozenset()
    holder: int = -1
    epoch: int = 0
    plans: int = 0
    in_hand: tuple[int, ...] = ()
    note: Note | None = None
    place: Place = Place()
    publishers: tuple[Publisher, Publisher] = (Publisher(), Publisher())
    limits: Limits = FEW


class Model:
    """The steps that can follow a state."""

    def __init__(self, target: Target, rules: Rules = ALL_RULES) -> None:
        self.target = target
        self.rules = rules
        self.objects = OBJECTS[target]
        first, second = (self._hide, self._confirm) if rules.hide_then_confirm else (self._confirm, self._hide)
        self._steps: dict[str, Callable[[State, int], State]] = {
            "opening": self._open,
            "sweeping": self._sweep,
            "idle": self._read,
            "read": self._plan,
            "planned": {"folder": first, "transaction": self._write, "receiver": self._check}[target],
            "hidden": second,
            "confirmed": self._show,
            "checked": self._send,
            "written": self._settle,
        }

    def following(self, state: State) -> Iterator[tuple[str, State]]:
        """Each thing that can happen next, with its name."""
        for row in range(len(self.objects)):
            yield from self._to(state, row)
        for who, publisher in enumerate(state.publishers):
            yield from self._of(state, who, publisher)

    def _to(self, state: State, row: int) -> Iterator[tuple[str, State]]:
        """What writers and operators do to a row."""
        limits = state.limits
        before = {other for other in range(row) if self.objects[other] == self.objects[row]}
        if row not in state.committed and before <= state.committed:
            yield f"row {row} commits", state._replace(committed=state.committed | {row})
        if row in state.settled and limits.requeues:
            asked = tuple([times + (number == row) for number, times in enumerate(state.asked)])
            fewer = limits._replace(requeues=limits.requeues - 1)
            yield f"row {row} is requeued", state._replace(settled=state.settled - {row}, asked=asked, limits=fewer)
        if row in state.held:
            yield f"row {row} is released", state._replace(held=state.held - {row})
        elif row in state.committed - state.settled and limits.holds:
            held = state._replace(held=state.held | {row}, limits=limits._replace(holds=limits.holds - 1))
            yield f"row {row} is held", held

    def _of(self, state: State, who: int, publisher: Publisher) -> Iterator[tuple[str, State]]:
        if publisher.at == "standby":
            if state.holder == -1:
                yield f"{who} takes the lock", self._take(state, who)
            elif state.holder != who and state.limits.takeovers:
                limits = state.limits._replace(takeovers=state.limits.takeovers - 1)
                yield f"{who} takes the lock over", self._take(state._replace(limits=limits), who)
            return
        after = self._steps[publisher.at](state, who)
        if after != state:
            yield f"{who} {publisher.at}", after
        if state.limits.kills:
            holder = -1 if state.holder == who else state.holder
            limits = state.limits._replace(kills=state.limits.kills - 1)
            killed = state._replace(holder=holder, limits=limits)
            yield f"{who} is killed", _with(killed, who, Publisher(last=self._remembered(publisher)))

    def _remembered(self, publisher: Publisher) -> int:
        """What a publisher knows of its target before it has the lock: nothing, but where that rule is off."""
        return 0 if self.rules.open_under_lock else publisher.last

    def _take(self, state: State, who: int) -> State:
        me = state.publishers[who]._replace(at="opening", epoch=state.epoch + 1)
        return _with(state._replace(holder=who, epoch=state.epoch + 1), who, me)

    def _open(self, state: State, who: int) -> State:
        me, place = state.publishers[who], state.place
        if self.rules.refuse_old_epochs:
            if place.epoch > me.epoch:
                return self._stand_by(state, who)
            place = place._replace(epoch=me.epoch)
        last = place.last if self.rules.open_under_lock else me.last
        after = "sweeping" if self.target == "folder" and self.rules.sweep else "idle"
        return _with(state._replace(place=place), who, me._replace(at=after, last=last))

    def _sweep(self, state: State, who: int) -> State:
        hidden = frozenset(part for part in state.place.hidden if part[0] == who)
        swept = state._replace(place=state.place._replace(hidden=hidden))
        return _with(swept, who, state.publishers[who]._replace(at="idle"))

    def _read(self, state: State, who: int) -> State:
        """The batch in hand again, without rows that were held since; else the next rows that wait."""
        if state.holder != who:
            return self._stand_by(state, who)
        batch = self._free(state, state.in_hand)
        if not batch:
            batch = self._free(state, sorted(state.committed - state.settled))[:BATCH]
            if not batch:
                return state
            state = state._replace(in_hand=batch, note=self._kept(state))
        note = self._set_aside(state.place, state.note, batch)
        return _with(state, who, state.publishers[who]._replace(at="read", batch=batch, note=note))

    def _free(self, state: State, rows: Sequence[int]) -> tuple[int, ...]:
        """Those that neither are held nor wait behind a held row of their object."""
        first = {self.objects[row]: row for row in sorted(state.held, reverse=True)}
        return tuple([row for row in rows if row not in state.settled and row < first.get(self.objects[row], row + 1)])

    def _kept(self, state: State) -> Note | None:
        """What was noted before this batch, as long as a row waits of which it speaks."""
        if state.note is None or not (self.rules.notes_outlive_holds or state.held):
            return None
        noted = {*state.note.rows, *state.note.done, *[row for _, row in state.note.away]}
        return state.note if noted - state.settled else None

    def _set_aside(self, place: Place, note: Note | None, batch: Sequence[int]) -> Note | None:
        """A plan whose row is held does not come now: the target knows of it, or it comes again under that plan."""
        if note is None or not note.rows or set(note.rows) <= set(batch):
            return note
        if self.target == "transaction":
            known = note.rows if place.plan == note.plan else ()
            return Note(0, (), note.after, _sorted(note.done, known), note.away)
        away = (*note.away, *[(note.plan, row) for row in note.rows])
        return Note(0, (), note.after, note.done, away)

    def _plan(self, state: State, who: int) -> State:
        """One row a plan, so that a batch has several."""
        if state.holder != who:
            return self._stand_by(state, who)
        me = state.publishers[who]
        former = me.note or Note(0, (), me.last, ())
        if former.rows:
            return _with(state, who, me._replace(at="planned", shown=0))
        again = [one for one in former.away if one[1] in me.batch and one[1] not in former.done]
        left = [row for row in me.batch if row not in former.done]
        if again:
            away = tuple([one for one in former.away if one != again[0]])
            note = Note(again[0][0], (again[0][1],), me.last, former.done, away)
        elif left:
            state = state._replace(plans=state.plans + 1)
            note = Note(state.plans, (left[0],), me.last, former.done, former.away)
        else:
            return _with(state, who, me._replace(at="written", note=former))
        noted = state._replace(note=note if self.rules.plan_is_noted else None)
        return _with(noted, who, me._replace(at="planned", note=note, shown=0))

    def _write(self, state: State, who: int) -> State:
        """One transaction of a database or a broker: epoch, plan and documents."""
        me, place = state.publishers[who], state.place
        note = _note(me)
        if self.rules.refuse_old_epochs and place.epoch != me.epoch:
            return self._stand_by(state, who)
        known = place.plan == note.plan if self.rules.by_plan else place.last >= note.rows[-1] + 1
        if not known:
            number = note.after + 1 if self.rules.by_plan else note.rows[-1] + 1
            found = (*place.found, *[(row, number) for row in note.rows])
            place = place._replace(found=found, plan=note.plan, last=number)
        return _with(state._replace(place=place), who, me._replace(at="written", last=place.last))

    def _hide(self, state: State, who: int) -> State:
        me = state.publishers[who]
        hidden = state.place.hidden | {(who, row) for row in _note(me).rows}
        return _with(state._replace(place=state.place._replace(hidden=hidden)), who, _next_of_two(me))

    def _confirm(self, state: State, who: int) -> State:
        me = state.publishers[who]
        if not self._is_mine(state, me):
            return self._stand_by(state, who)
        return _with(state, who, _next_of_two(me))

    def _is_mine(self, state: State, me: Publisher) -> bool:
        return not self.rules.refuse_old_epochs or state.place.epoch == me.epoch

    def _show(self, state: State, who: int) -> State:
        """One rename: the file must still be there; one of that name is replaced."""
        me, place = state.publishers[who], state.place
        rows = _note(me).rows
        if me.shown == len(rows):
            return _with(state, who, me._replace(at="written"))
        row = rows[me.shown]
        if (who, row) not in place.hidden:
            return self._stand_by(state, who)
        place = place._replace(hidden=place.hidden - {(who, row)}, found=(*place.found, (row, 0)))
        return _with(state._replace(place=place), who, me._replace(shown=me.shown + 1))

    def _check(self, state: State, who: int) -> State:
        """Looks whether the lease is fresh; it may run out before the request is there."""
        if state.holder != who:
            return self._stand_by(state, who)
        return _with(state, who, state.publishers[who]._replace(at="checked"))

    def _send(self, state: State, who: int) -> State:
        """One request to a receiver that remembers plans and rows, and the highest epoch."""
        me, place = state.publishers[who], state.place
        if self.rules.refuse_old_epochs and place.epoch > me.epoch:
            return self._stand_by(state, who)
        place = place._replace(epoch=max(place.epoch, me.epoch))
        for row in _note(me).rows:
            key = (_note(me).plan, row)
            if key not in place.taken:
                place = place._replace(taken=place.taken | {key}, found=(*place.found, (row, 0)))
        return _with(state._replace(place=place), who, me._replace(at="written"))

    def _settle(self, state: State, who: int) -> State:
        """Settles the batch when all of it is there; else the next plan of the same batch is made."""
        if state.holder != who and self.rules.settle_under_lock:
            return self._stand_by(state, who)
        me = state.publishers[who]
        note = _note(me)
        done = _sorted(note.done, note.rows)
        if not set(me.batch) <= set(done):
            # Which plan went is noted with the next one; until then a repeat finds this one and is recognised.
            return _with(state, who, me._replace(at="read", note=Note(0, (), me.last, done, note.away)))
        settled = state.settled | set(me.batch)
        done = tuple([row for row in done if row not in settled])
        away = tuple([one for one in note.away if one[1] not in settled])
        kept = Note(0, (), 0, done, away) if done or away else None
        ended = state._replace(settled=settled, in_hand=(), note=kept)
        return _with(ended, who, me._replace(at="idle", batch=(), note=None))

    def _stand_by(self, state: State, who: int) -> State:
        holder = -1 if state.holder == who else state.holder
        me = Publisher(last=self._remembered(state.publishers[who]))
        return _with(state._replace(holder=holder), who, me)


def wrong(state: State, target: Target) -> str | None:
    """What must never be seen, or None."""
    objects = OBJECTS[target]
    times = [[number for row, number in state.place.found if row == wanted] for wanted in range(len(objects))]
    for row in state.settled:
        if not times[row]:
            return f"row {row} is settled and nowhere"
        if target != "folder" and len(times[row]) < state.asked[row]:
            return f"row {row} was requeued, is settled, and did not come again"
    for row, found in enumerate(times):
        if target != "folder" and len(found) > state.asked[row]:
            return f"row {row} is there {len(found)} times"
    shown = [row for row, _ in state.place.found]
    for place, row in enumerate(shown):
        # Somebody who takes files away as they come would see an old document after a newer one.
        later = [other for other in shown[:place] if objects[other] == objects[row] and other > row]
        if later and state.asked[row] == 1:
            return f"row {row} came after row {later[0]} of its object"
    numbers = [number for _, number in state.place.found]
    if target == "transaction" and any(after <= before for before, after in pairwise(numbers)):
        return f"numbers are {numbers}"
    return None


def search(model: Model, limits: Limits = FEW) -> tuple[int, list[str] | None, str]:
    """How many states there are, and the shortest way to one that must not be, with what is wrong there."""
    begin = State(limits=limits, asked=(1,) * len(model.objects))
    came: dict[State, tuple[State, str] | None] = {begin: None}
    left = deque([begin])
    while left:
        state = left.popleft()
        following = list(model.following(state))
        problem = wrong(state, model.target)
        if problem is None and not following and len(state.settled) < len(model.objects):
            problem = "nothing can happen any more, and rows wait"
        if problem is not None:
            return len(came), _way(came, state), problem
        for name, after in following:
            if after not in came:
                came[after] = (state, name)
                left.append(after)
    return len(came), None, ""


def _way(came: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    way: list[str] = []
    while (step := came[state]) is not None:
        state, name = step
        way.append(name)
    return way[::-1]


def _next_of_two(me: Publisher) -> Publisher:
    """Hiding and confirming come one after the other, then files get their names."""
    return me._replace(at="hidden" if me.at == "planned" else "confirmed")


def _sorted(done: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted({*done, *more}))


def _note(publisher: Publisher) -> Note:
    assert publisher.note is not None
    return publisher.note


def _with(state: State, who: int, publisher: Publisher) -> State:
    first, second = state.publishers
    return state._replace(publishers=(publisher, second) if who == 0 else (first, publisher))
