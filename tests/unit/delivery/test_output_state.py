"""How outputs stand: what a turn leaves behind, what survives of it, and that nothing is invented."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import Position
from eventlog.daemon.health import stands
from eventlog.delivery.output import OutputState, failing, read_output_states
from eventlog.publisher.turn_report import Turn
from eventlog.sources.marks import as_text

list_outputs = st.dictionaries(
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


@pytest.mark.parametrize(
    "last, error",
    [(("6", (6,)), None), (("6", (6,)), "no such group"), (None, "busy"), (None, None)],
)
def test_what_was_taken_and_what_was_not(last: tuple[str, Position] | None, error: str | None) -> None:
    former = OutputState(document="former", position=(1,), at=10.0, error="long ago", failed_at=9.0)
    found = stands(former, Turn(last=last, complaint=error), 20.0)
    taken = ("former", (1,), 10.0) if last is None else (*last, 20.0)
    assert (found.document, found.position, found.at) == taken
    assert (found.error, found.failed_at) == (("long ago", 9.0) if error is None else (error, 20.0))


@given(list_outputs)
def test_what_is_written_is_read(found: dict[str, OutputState]) -> None:
    assert read_output_states(as_text(found)) == found


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"a": 1}'])
def test_what_cannot_be_read_is_forgotten(text: str | None) -> None:
    assert read_output_states(text) == {}


@pytest.mark.parametrize(
    "at, failed_at, fails",
    [(None, None, False), (1.0, None, False), (None, 1.0, True), (2.0, 1.0, False), (1.0, 2.0, True)],
)
def test_an_output_fails_that_did_not_take_the_last(at: float | None, failed_at: float | None, fails: bool) -> None:
    assert failing({"one": OutputState(), "two": OutputState(at=at, failed_at=failed_at)}) is fails
