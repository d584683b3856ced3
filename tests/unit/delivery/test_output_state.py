"""How outputs stand: what a delivery leaves behind, what survives of it, and that nothing is invented."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import SinkError
from eventlog.core.model import Change, Document, Op, Outcome, Reason, RowId, Status
from eventlog.daemon.vitals import OutputTurn, stands, turn_of
from eventlog.delivery.output import (
    Delivery,
    Output,
    OutputState,
    Piece,
    Strictness,
    failing,
    newest,
    read_output_states,
)
from eventlog.sources.marks import as_text
from eventlog.sources.notes import Progress
from eventlog.xds.write import XdsFormat
from tests.support.memory import UnaskedSink

standings = st.dictionaries(
    st.text(),
    st.builds(
        OutputState,
        document=st.text(),
        position=st.none() | st.tuples(st.integers(0, 2**62)),
        at=st.none() | st.floats(0, 2e9),
        error=st.none() | st.text(),
        failed_at=st.none() | st.floats(0, 2e9),
    ),
)


class Receiver(UnaskedSink):
    """A sink that answers as it was told to, and goes away when it was told nothing."""

    def __init__(self, answers: Sequence[Outcome] | None) -> None:
        self._answers = answers

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        if self._answers is None:
            raise SinkError("Nobody is there.")
        return self._answers


def delivered(answers: Sequence[Outcome] | None) -> OutputTurn:
    """What a share of two changes leaves behind."""
    changes = [
        Change(row=RowId(schema=None, table="usr", key=f"idu={n}"), op=Op.DELETE, edits=(), positions=((n,),))
        for n in (5, 6)
    ]
    output = Output(format=XdsFormat(), sink=Receiver(answers))
    delivery = Delivery(output, [Piece(changes=changes)], Progress(), Strictness(on_retry="object"))
    try:
        delivery.run(None, lambda: None, lambda: None)
    except SinkError as error:
        return turn_of(delivery, error)
    return turn_of(delivery, None)


@pytest.mark.parametrize(
    "answers, position, error",
    [
        ((), (6,), None),
        (
            [Outcome(position=(5,), status=Status.ERROR, reason=Reason.REFUSED, note="no such group")],
            (6,),
            "no such group",
        ),
        ([Outcome(position=(6,), status=Status.NEW, reason=Reason.RETRY, note="busy")], (5,), "busy"),
        ([Outcome(position=(n,), status=Status.NEW, reason=Reason.RETRY) for n in (5, 6)], None, "retry"),
        ([Outcome(position=(6,), status=Status.WARNING, note="odd")], (6,), None),
        (None, None, "Nobody is there."),
    ],
)
def test_what_was_taken_and_what_was_not(
    answers: Sequence[Outcome] | None, position: tuple[int] | None, error: str | None
) -> None:
    former = OutputState(document="former", position=(1,), at=10.0, error="long ago", failed_at=9.0)
    found = stands(former, delivered(answers), 20.0)
    taken = ("former", (1,), 10.0) if position is None else (f"{position[0]:020}", position, 20.0)
    assert (found.document, found.position, found.at) == taken
    assert (found.error, found.failed_at) == (("long ago", 9.0) if error is None else (error, 20.0))


@given(standings)
def test_what_is_written_is_read(found: dict[str, OutputState]) -> None:
    assert read_output_states(as_text(found)) == found


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"a": 1}'])
def test_what_cannot_be_read_is_forgotten(text: str | None) -> None:
    assert read_output_states(text) == {}


def test_passwords_that_former_versions_wrote_are_taken_out() -> None:
    former = {"db u:secret@h": OutputState(error="away: pg://u:secret@h", document="1", documents=3)}
    read = read_output_states(as_text({"pg://u:secret@h/d": former["db u:secret@h"]}))
    assert read == {"pg://u:***@h/d": OutputState(error="away: pg://u:***@h", document="1", documents=3)}


def test_of_what_happened_the_newest_counts() -> None:
    former = {
        "a": OutputState(document="1", position=(1,), at=1.0, error="then", failed_at=1.0),
        "b": OutputState(document="2", position=(2,), at=2.0),
    }
    present = {"a": OutputState(document="3", position=(3,), at=3.0), "c": OutputState(error="now", failed_at=4.0)}
    assert newest(former, present) == {
        "a": OutputState(document="3", position=(3,), at=3.0, error="then", failed_at=1.0),
        "b": former["b"],
        "c": OutputState(error="now", failed_at=4.0),
    }


@pytest.mark.parametrize(
    "at, failed_at, fails",
    [(None, None, False), (1.0, None, False), (None, 1.0, True), (2.0, 1.0, False), (1.0, 2.0, True)],
)
def test_an_output_fails_that_did_not_take_the_last(at: float | None, failed_at: float | None, fails: bool) -> None:
    assert failing({"one": OutputState(), "two": OutputState(at=at, failed_at=failed_at)}) is fails
