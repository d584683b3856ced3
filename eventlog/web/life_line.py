"""The way of one row: written, taken, and where it is at each output, with what may be done about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from eventlog.care.ages import utc_text
from eventlog.care.rows import HELD_SINCE, LogRow
from eventlog.core.model import TABLE_FAULTS, Reason, Status
from eventlog.core.plural import count_words
from eventlog.explain.states import RowStage
from eventlog.web.addresses import address
from eventlog.web.reading import OutputView
from eventlog.web.words import Kind, status_word

Fields = Mapping[str, str]

MARKS: Final[Mapping[Kind, str]] = {"good": "✓", "calm": "…", "warn": "▲", "bad": "✗", "": "–"}

UNREAD: Final = RowStage(output="", stage="unsealed")

BUTTONS: Final = {"release": "Release…", "requeue": "Requeue…", "try": "Try now…", "resume": "Resume…"}
"""What the buttons of a step say."""


class LifeStep(Struct, frozen=True, kw_only=True):
    """A step: its name, how it stands in a word and a colour, a sentence about it, where it leads, and actions with the
    fields of their forms.
    """

    name: str
    kind: Kind
    word: str = ""
    sentence: str = ""
    to: str = ""
    actions: tuple[tuple[str, Fields], ...] = ()

    @property
    def mark(self) -> str:
        """Return the sign that says the same as the colour."""
        return MARKS[self.kind]


def life_line(
    row: LogRow, stages: Sequence[RowStage], outputs: Sequence[OutputView], finished_at: str | None
) -> tuple[LifeStep, ...]:
    """Follow a row from being written to each output, and to its status.

    The stages of a row that has ended are what its outputs answered; none where all of them answered the same.
    """
    written = LifeStep(name="written", kind="good", word=row.event_time or "")
    if row.status == Status.NEW:
        return (written, _draw_taken(row, stages), *_of_outputs(stages, outputs, UNREAD))
    if row.status not in set(Status):
        return (written, LifeStep(name="ignored", kind="", word=f"its status is {row.status}"))
    taken = LifeStep(name="taken", kind="good")
    return (written, taken, *_draw_answers(row, stages, outputs), _draw_end(row, stages, finished_at))


def _draw_taken(row: LogRow, stages: Sequence[RowStage]) -> LifeStep:
    if row.reason == Reason.HELD and (row.note or HELD_SINCE).startswith(HELD_SINCE):
        actions = (("release", _of_row("release", row)),)
        sentence = f"It is {row.note or 'held'}"
        return LifeStep(name="held", kind="warn", word="by somebody", sentence=sentence, actions=actions)
    if any(stage.stage != "unsealed" for stage in stages):
        return LifeStep(name="taken", kind="good")
    return LifeStep(name="taken", kind="calm", word="not yet")


def _of_outputs(
    stages: Sequence[RowStage], outputs: Sequence[OutputView], otherwise: RowStage | None
) -> list[LifeStep]:
    """List where the row is at each output: those of the configuration first, which are `otherwise` where nothing is
    known of them.
    """
    by_name = {stage.output: stage for stage in stages}
    steps = []
    for output in outputs:
        names = (output.noted, *output.former_names)
        stage = next((by_name.pop(name) for name in names if name in by_name), otherwise)
        if stage is not None:
            steps.append(_at_output(stage, output))
    for name, stage in by_name.items():
        steps.append(_at_output(stage, OutputView(name=name, noted=name, format="")))
    return steps


def _at_output(stage: RowStage, output: OutputView) -> LifeStep:
    return _over(stage, output) if stage.stage == "over" else _waiting(stage, output)


def _over(stage: RowStage, output: OutputView) -> LifeStep:
    to = address("output", name=output.noted)
    if stage.status in (None, Status.SUCCESS) and stage.reason in (None, Reason.PUBLISHED):
        return LifeStep(name=output.name, kind="good", word="delivered", to=to)
    word = status_word(stage.status)
    kind = word.kind if word.kind != "calm" else ""
    said = stage.reason or word.text
    if stage.status == Status.WARNING and stage.reason == Reason.PUBLISHED:
        said = "delivered with a warning"
    sentence = f"{output.name}: {stage.note}" if stage.note else ""
    return LifeStep(name=output.name, kind=kind, word=said, sentence=sentence, to=to)


def _waiting(stage: RowStage, output: OutputView) -> LifeStep:
    to, name = address("output", name=output.noted), output.name
    retry = (("try", {"action": "try", "output": output.noted}),)
    if stage.paused or output.paused is not None:
        resume = (("resume", {"action": "resume", "output": output.noted}),)
        pause = f"{name} is paused {output.paused}" if output.paused else f"{name} is paused."
        return LifeStep(name=name, kind="warn", word="paused", sentence=pause, to=to, actions=resume)
    sentence = f"{name}: {stage.sentence}"
    if stage.stage == "parked" and stage.attempts:
        due = "" if not stage.due else f" The next is due at {utc_text(stage.due / 1000)} UTC."
        why = f" {stage.note}" if stage.note else ""
        tries = count_words(stage.attempts, "try", "tries")
        return LifeStep(name=name, kind="bad", word=tries, sentence=f"{sentence}{due}{why}", to=to, actions=retry)
    if stage.stage == "parked" and stage.behind is not None:
        return LifeStep(name=name, kind="warn", word=f"behind row {stage.behind}", sentence=sentence, to=to)
    if stage.stage == "parked" and stage.reason not in (None, "behind", "new"):
        is_fault = stage.reason in {str(fault) for fault in TABLE_FAULTS}
        kind: Kind = "bad" if is_fault else "warn"
        return LifeStep(name=name, kind=kind, word=str(stage.reason), sentence=sentence, to=to)
    if output.state.is_failing:
        cause = f"{name} fails: {output.state.error}"
        return LifeStep(name=name, kind="bad", word="failing", sentence=cause, to=to, actions=retry)
    if stage.stage == "planned":
        return LifeStep(name=name, kind="calm", word="being delivered", to=to)
    return LifeStep(name=name, kind="calm", word="waits", to=to)


def _draw_answers(row: LogRow, stages: Sequence[RowStage], outputs: Sequence[OutputView]) -> list[LifeStep]:
    """List what each output answered: all of them the same where nothing else was noted."""
    if stages:
        return _of_outputs(stages, outputs, None)
    if row.status == Status.SUCCESS and row.reason not in (None, Reason.PUBLISHED):
        return []  # nothing of it was to be sent
    alike = RowStage(output="", stage="over", status=row.status, reason=row.reason)
    # One that came later, and has taken nothing yet, has not had this row either.
    return _of_outputs((), [output for output in outputs if output.state.position] or outputs, alike)


def _draw_end(row: LogRow, stages: Sequence[RowStage], finished_at: str | None) -> LifeStep:
    """Say how a row has ended; what is an error can be tried again."""
    word = status_word(row.status)
    name = f"{row.status} {row.reason or word.text}"
    again = row.status in (Status.ERROR, Status.FATAL)
    actions = (("requeue", _of_row("requeue", row)),) if again else ()
    at = f"{finished_at}" if finished_at else ""
    sentence = row.note or ""
    if row.note in {stage.note for stage in stages}:  # it stands beside the output that said it
        sentence = "When the cause is repaired, publish the row again." if again else ""
    return LifeStep(name=name, kind=word.kind, word=at, sentence=sentence, actions=actions)


def _of_row(action: str, row: LogRow) -> Fields:
    return {"action": action, "id": str(row.record_id)}
