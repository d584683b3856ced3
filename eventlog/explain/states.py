"""Where the journal has each output, and where it has one row: for those who look, and for no publisher."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from eventlog.core.model import Reason
from eventlog.delivery.output import read_output_states
from eventlog.publisher.memory import read_memory
from eventlog.publisher.selection import BEHIND
from eventlog.publisher.table_faults import FAULTS
from eventlog.publisher.tables import FOR_SOMEBODY
from eventlog.sources.marks import OUTPUTS, Marks
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
    """Where an output is: how many rows are ahead of it, may be on their way to it, or wait.

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
        """Count the rows parked for it."""
        return sum(wait.rows for wait in self.waits)

    @property
    def kept(self) -> int:
        """Count the rows of the journal it lacks."""
        return self.ahead + self.on_the_way + self.waiting


def read_places(connection: Connection, log: Log) -> dict[str, OutputPlace]:
    """Read the place of every output. One pass over the parked rows, and one read of each other table."""
    memory = read_memory(connection, log)
    waits: dict[str, list[WaitingFor]] = {}
    for output, reason, rows, first, due in log.rows(connection, log.query("parked_reasons")):
        soonest = None if due is None else int(due)
        waiting = WaitingFor(reason=str(reason), rows=int(rows), first=int(first), due=soonest)
        waits.setdefault(str(output), []).append(waiting)
    places: dict[str, OutputPlace] = {}
    for name, row in memory.outputs.items():
        ahead = [batch.records for batch in memory.ahead(row).values()]
        places[name] = OutputPlace(
            name=name,
            position=row.position,
            plan=row.plan,
            ahead=sum(map(len, ahead)),
            on_the_way=len(memory.planned.get(name, ())),
            waits=waits.get(name, ()),
            paused=row.paused,
            warning=row.warning,
        )
    return places


Stage = Literal["ahead", "parked", "planned", "over", "unsealed"]
"""Where a waiting row is for one output; `unsealed` are rows that no publisher has read yet."""


class RowStage(Struct, frozen=True, kw_only=True):
    """Where a waiting row is for one output.

    Of a parked one `reason` says why, `attempts` how often it was offered, `due` when it may go,
    and `behind` after which row of its object; of one that is over, `status`, `reason` and `note` are
    what the output answered.
    """

    output: str
    stage: Stage
    status: str | None = None
    reason: str | None = None
    note: str | None = None
    attempts: int = 0
    due: int | None = None
    behind: int | None = None
    behind_held: bool = False
    paused: bool = False

    @property
    def sentence(self) -> str:
        """Describe what it waits for, as the beginning of a sentence."""
        if self.stage == "parked":
            return self._parked
        if self.stage == "planned":
            return "It is being delivered."
        if self.stage == "over":
            if self.reason:
                return f"It is over: {self.reason}."
            return "It is there."
        if self.paused:
            return "It waits until somebody resumes the output."
        return "It waits."

    @property
    def _parked(self) -> str:
        if self.behind is not None:
            why = "is held" if self.behind_held else "is offered again first"
            return f"It waits behind row {self.behind} of the same object, which {why}."
        if self.reason == Reason.HELD:
            return "It waits until somebody releases it."
        if self.reason == Reason.RESTORED:
            return "It waits until somebody resumes the output: the log was restored, and the target may have it."
        if self.reason in FAULTS:
            return f"It waits until its table can be read ({self.reason}): {self.note}"
        if self.attempts:
            return f"It is offered again after {self.attempts} attempt{'s' * (self.attempts != 1)}."
        if self.reason in (None, BEHIND):
            return "It waits."
        return f"It waits: {self.reason}."


def stages_of(connection: Connection, log: Log, record: int) -> list[RowStage]:
    """Find the stage of a waiting row for each output: one read of each table."""
    memory = read_memory(connection, log)
    parked = _read_parked(log.rows(connection, log.query("parked_row"), {"record_id": record}))
    run = {"first": record, "last": record}
    answers: dict[str, tuple[str, str, str | None]] = {}
    for _, output, status, reason, note in log.rows(connection, log.query("answer_read"), run):
        answers[str(output)] = (str(status), str(reason), note)
    sealed = bool(parked or answers) or record in memory.taken
    stages: list[RowStage] = []
    for name, row in memory.outputs.items():
        paused = row.paused is not None
        ahead = [batch.records for batch in memory.ahead(row).values()]
        if name in parked:
            stages.append(parked[name])
        elif record in memory.planned.get(name, ()):
            stages.append(RowStage(output=name, stage="planned"))
        elif not sealed:
            stages.append(RowStage(output=name, stage="unsealed", paused=paused))
        elif any(record in records for records in ahead):
            stages.append(RowStage(output=name, stage="ahead", paused=paused))
        else:
            status, reason, note = answers.get(name, (None, None, None))
            stages.append(RowStage(output=name, stage="over", status=status, reason=reason, note=note))
    return stages


def _read_parked(rows: Sequence[Sequence[Any]]) -> Mapping[str, RowStage]:
    """Read the row's stage at outputs with it parked."""
    stages: dict[str, RowStage] = {}
    for output, reason, note, attempts, due, ahead, ahead_reason, ahead_due in rows:
        former = stages.get(str(output))
        is_held = ahead_due is None and ahead_reason in FOR_SOMEBODY
        # Of the rows before it only the first counts, or the first one that is held.
        if former is not None and (former.behind_held or not is_held):
            continue
        soonest = None if due is None else int(due)
        stages[str(output)] = RowStage(
            output=str(output),
            stage="parked",
            reason=str(reason),
            note=note,
            attempts=int(attempts),
            due=soonest,
            behind=None if ahead is None else int(ahead),
            behind_held=is_held,
        )
    return stages


def waiting_sentences(connection: Connection, log: Log, record: int) -> Iterator[str]:
    """Say why a row waits: one sentence where the outputs agree, else one for each of them."""
    held = log.rows(connection, log.query("hold_row"), {"record_id": record})
    if held:
        said = str(held[0][0] or "")
        # Somebody's words, which end as they like.
        yield f"It is {said}{'' if said.endswith(('.', '!', '?')) else '.'}" if said else "Somebody holds it."
    stages = stages_of(connection, log, record)
    told = [stage for stage in stages if stage.stage != "over" or stage.reason]
    sentences = {stage.sentence for stage in told}
    if len(sentences) == 1 and len(told) == len(stages):
        yield sentences.pop()
    else:
        for stage in told:
            yield f"{stage.output}: {stage.sentence}"


def failing_sentences(connection: Connection, log: Log, record: int) -> Iterator[str]:
    """Say of the outputs that lack a row which of them fail, and why."""
    lacking = [stage.output for stage in stages_of(connection, log, record) if stage.stage != "over"]
    states = read_output_states(Marks(log).get(connection, OUTPUTS))
    for output in lacking:
        state = states.get(output)
        if state is not None and state.is_failing:
            yield f"{output} fails: {state.error}"
