"""A model of the journal, small enough to look at every state: two publishers, one log, two outputs, any interleaving.

Each step is what is atomic in the program: a transaction on the log, or one at a target that can be asked what it has.
Between two steps a publisher may be killed, or frozen for as long as one likes while the other one takes the lock over;
rows commit late, and are held and released. `docs/decisions/0055-the-journal.md` tells the same in words.

`Rules` switches single rules of the journal off: then the search must find what goes wrong, or it proves nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple, TypeVar

Rows = tuple[int, ...]
S = TypeVar("S", bound=Hashable)
"""A state of any model."""


class Rules(NamedTuple):
    """The rules of the journal."""

    under_the_lock: bool = True
    """A transaction on the journal looks whether its publisher still has the lock."""
    refuse_old_epochs: bool = True
    """A target refuses a publisher before the one that opened it last."""
    planned_first: bool = True
    """A plan stands in the journal before the target gets it."""
    resolve_asks: bool = True
    """Who finds a plan asks the target whether it has it."""
    stamp: bool = True
    """What was taken is planned only if nobody held or released a row since."""
    behind_waits: bool = True
    """A row waits behind an earlier one of its object that waits."""
    others_positions: bool = True
    """A row gets its status when no output has its batch ahead,"""
    others_planned: bool = True
    """has it in a plan,"""
    others_parked: bool = True
    """or has it parked."""


class Limits(NamedTuple):
    """How often each of these may happen in one history."""

    takeovers: int
    kills: int
    holds: int


class Output(NamedTuple):
    """What the journal's tables have of an output, and its target."""

    position: int = 0
    plans: int = 0
    planned: Rows = ()
    parked: Rows = ()
    epoch: int = 0
    """Of the publisher that opened the target last."""
    has: int = 0
    """The last plan that the target has."""
    came: Rows = ()


class Taken(NamedTuple):
    """What a publisher has read and decided: which rows go, which wait, which are new."""

    going: Rows
    parked: Rows
    new: Rows
    position: int
    stamp: int


class Publisher(NamedTuple):
    """One process: where it is, and what it remembers; all of it is gone when it is killed."""

    at: str = "standing by"
    epoch: int = 0
    output: int = 0
    taken: Taken | None = None
    resolved: frozenset[int] = frozenset()


class State(NamedTuple):
    """Everything."""

    limits: Limits
    committed: Rows = ()
    finished: Rows = ()
    held: Rows = ()
    stamp: int = 0
    """Changes with each hold and each release."""
    batches: tuple[Rows, ...] = ()
    outputs: tuple[Output, ...] = (Output(), Output())
    holder: int = -1
    epoch: int = 0
    publishers: tuple[Publisher, ...] = (Publisher(), Publisher())
    held_but_planned: Rows = ()


class Model:
    """The steps that can follow a state. `objects` has the object of each row."""

    def __init__(self, objects: str, rules: Rules) -> None:
        self.objects = objects
        self.rules = rules

    def following(self, state: State) -> Iterator[tuple[str, State]]:
        """Yield each possible next step, with its name."""
        limits = state.limits
        for row, name in enumerate(self.objects):
            former = [other for other in range(row) if self.objects[other] == name]
            if row not in state.committed and set(former) <= set(state.committed):
                yield f"row {row} commits", state._replace(committed=_with(state.committed, row))
            if row in state.held:
                released = tuple(other for other in state.held if other != row)
                yield f"row {row} is released", state._replace(held=released, stamp=state.stamp + 1)
            elif row in state.committed and row not in state.finished and limits.holds:
                fewer = limits._replace(holds=limits.holds - 1)
                held = state._replace(held=_with(state.held, row), stamp=state.stamp + 1, limits=fewer)
                yield f"row {row} is held", held
        for who, me in enumerate(state.publishers):
            if me.at == "standing by":
                if state.holder == -1:
                    yield f"{who} takes the lock", _begun(state, who)
                elif state.holder != who and limits.takeovers:
                    fewer = limits._replace(takeovers=limits.takeovers - 1)
                    yield f"{who} takes the lock over", _begun(state._replace(limits=fewer), who)
                continue
            for name, after in self._steps(state, who, me):
                if after != state:
                    yield f"{who} {name}", after
            if limits.kills:
                fewer = limits._replace(kills=limits.kills - 1)
                yield f"{who} is killed", _ended(state._replace(limits=fewer), who)

    def _steps(self, state: State, who: int, me: Publisher) -> Iterator[tuple[str, State]]:
        if me.at == "idle":
            for number in range(len(state.outputs)):
                if number not in me.resolved:
                    yield f"opens and resolves {number}", self._resolve(state, who, number)
                else:
                    yield f"takes for {number}", self._take(state, who, number)
            return
        step = {"taken": self._plan, "planned": self._write, "written": self._done}[me.at]
        yield f"goes on from {me.at}", step(state, who, me)

    def _resolve(self, state: State, who: int, number: int) -> State:
        """Open the target, and ask it for the plan in the journal; send the plan if it lacks it."""
        me, output = state.publishers[who], state.outputs[number]
        if self.rules.refuse_old_epochs:
            if output.epoch > me.epoch:
                return _ended(state, who)
            state = _put(state, number, output._replace(epoch=me.epoch))
        me = me._replace(output=number, resolved=me.resolved | {number})
        if output.planned:
            is_there = output.has == output.plans and self.rules.resolve_asks
            taken = Taken(output.planned, (), (), output.position, state.stamp)
            me = me._replace(at="written" if is_there else "planned", taken=taken)
        return _as(state, who, me)

    def _take(self, state: State, who: int, number: int) -> State:
        """Read parked rows in their turn, the batches ahead, or new rows if there are none."""
        output = state.outputs[number]
        ahead = [row for batch in state.batches[output.position :] for row in batch]
        sealed = {row for batch in state.batches for row in batch}
        new = () if ahead else tuple(row for row in state.committed if row not in sealed and row not in state.finished)
        going, parked, blocked = list[int](), list[int](), set[str]()
        for row in sorted({*output.parked, *ahead, *new}):
            if row in state.held or (self.rules.behind_waits and self.objects[row] in blocked):
                parked.append(row)
                blocked.add(self.objects[row])
            else:
                going.append(row)
        taken = Taken(tuple(going), tuple(parked), new, len(state.batches), state.stamp)
        if not going and tuple(parked) == output.parked and not ahead:
            return state
        me = state.publishers[who]._replace(at="taken", output=number, taken=taken)
        return _as(state, who, me if self.rules.planned_first or not going else me._replace(at="planned"))

    def _plan(self, state: State, who: int, me: Publisher) -> State:
        """Seal new rows, and enter going and waiting ones."""
        if self.rules.under_the_lock and state.holder != who:
            return _ended(state, who)
        taken, output = _taken(me), state.outputs[me.output]
        if self.rules.stamp and state.stamp != taken.stamp:
            return _as(state, who, me._replace(at="idle", taken=None))
        sealed = {row for batch in state.batches for row in batch}
        if sealed & set(taken.new):  # another output has sealed them meanwhile
            return _as(state, who, me._replace(at="idle", taken=None))
        position = taken.position
        if taken.new:
            state = state._replace(batches=(*state.batches, taken.new))
            position = len(state.batches)
        planned = taken.going
        entered = output._replace(position=position, parked=taken.parked, planned=planned)
        if planned:
            entered = entered._replace(plans=output.plans + 1)
        held = tuple(row for row in planned if row in state.held)
        state = _put(state._replace(held_but_planned=held), me.output, entered)
        after = "idle"
        if planned:
            after = "planned" if self.rules.planned_first else "written"
        return _as(state, who, me._replace(at=after))

    def _write(self, state: State, who: int, me: Publisher) -> State:
        """Commit the epoch, the plan and its rows to the target in one transaction."""
        output = state.outputs[me.output]
        if self.rules.refuse_old_epochs and output.epoch != me.epoch:
            return _ended(state, who)
        written = output._replace(has=output.plans, came=(*output.came, *_taken(me).going))
        is_planned = self.rules.planned_first or output.planned == _taken(me).going
        return _as(_put(state, me.output, written), who, me._replace(at="written" if is_planned else "taken"))

    def _done(self, state: State, who: int, me: Publisher) -> State:
        """End the plan; set the status of rows no other output has ahead, planned or parked."""
        if self.rules.under_the_lock and state.holder != who:
            return _ended(state, who)
        state = _put(state, me.output, state.outputs[me.output]._replace(planned=()))
        others = [output for number, output in enumerate(state.outputs) if number != me.output]
        over = set(_taken(me).going)
        for output in others:
            if self.rules.others_positions:
                over.difference_update(row for batch in state.batches[output.position :] for row in batch)
            if self.rules.others_planned:
                over.difference_update(output.planned)
            if self.rules.others_parked:
                over.difference_update(output.parked)
        finished = tuple(sorted({*state.finished, *over}))
        return _as(state._replace(finished=finished), who, me._replace(at="idle", taken=None))


def wrong(state: State, objects: str) -> str | None:
    """Describe a forbidden state; None for an allowed one."""
    if state.held_but_planned:
        return f"rows {state.held_but_planned} were held, and planned then"
    for number, output in enumerate(state.outputs):
        for place, row in enumerate(output.came):
            former = output.came[:place]
            if row in former:
                return f"row {row} came twice to {number}"
            if any(objects[other] == objects[row] and other > row for other in former):
                return f"row {row} came to {number} behind a later one of its object"
        for row in state.finished:
            if row not in output.came:
                return f"row {row} has its status, and {number} does not have it"
    return None


def search(objects: str, rules: Rules, limits: Limits) -> tuple[int, list[str], str]:
    """Search all states; return their number, the shortest way to a forbidden one, and its fault."""
    model = Model(objects, rules)

    def unfinished(state: State) -> str | None:
        at_rest = all(not (output.planned or output.parked) for output in state.outputs)
        if len(state.finished) < len(objects) or not at_rest:
            return "nothing can happen any more, and rows wait"
        return None

    return search_states(State(limits=limits), model.following, lambda state: wrong(state, objects), unfinished)


def search_states(
    begin: S,
    following: Callable[[S], Iterable[tuple[str, S]]],
    wrong: Callable[[S], str | None],
    unfinished: Callable[[S], str | None],
) -> tuple[int, list[str], str]:
    """Search the states of any model; `unfinished` describes the fault of a state nothing follows."""
    came: dict[S, tuple[S, str] | None] = {begin: None}
    left = deque([begin])
    while left:
        state = left.popleft()
        next_states = list(following(state))
        problem = wrong(state) or (None if next_states else unfinished(state))
        if problem is not None:
            return len(came), _way(came, state), problem
        for name, after in next_states:
            if after not in came:
                came[after] = (state, name)
                left.append(after)
    return len(came), [], ""


def _way(came: dict[S, tuple[S, str] | None], state: S) -> list[str]:
    way: list[str] = []
    while (step := came[state]) is not None:
        state, name = step
        way.append(name)
    return way[::-1]


def _begun(state: State, who: int) -> State:
    epoch = state.epoch + 1
    return _as(state._replace(holder=who, epoch=epoch), who, Publisher(at="idle", epoch=epoch))


def _ended(state: State, who: int) -> State:
    """Killed, or replaced: it has forgotten everything."""
    holder = -1 if state.holder == who else state.holder
    return _as(state._replace(holder=holder), who, Publisher())


def _as(state: State, who: int, me: Publisher) -> State:
    publishers = list(state.publishers)
    publishers[who] = me
    return state._replace(publishers=tuple(publishers))


def _put(state: State, number: int, output: Output) -> State:
    outputs = list(state.outputs)
    outputs[number] = output
    return state._replace(outputs=tuple(outputs))


def _with(rows: Rows, row: int) -> Rows:
    return tuple(sorted((*rows, row)))


def _taken(me: Publisher) -> Taken:
    assert me.taken is not None
    return me.taken
