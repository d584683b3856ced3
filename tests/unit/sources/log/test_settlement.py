"""What settling makes of outcomes before it reaches the database."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import Outcome, Reason, Status
from eventlog.publisher.statuses import by_status, is_noted, note_of
from eventlog.sources.marks import RowRanges
from tests.support.shares import met, shares

outcomes = st.lists(
    st.builds(
        Outcome,
        position=st.integers(min_value=1).map(lambda number: (number,)),
        status=st.sampled_from(Status),
        reason=st.sampled_from(Reason),
        note=st.none() | st.text(st.characters(codec=None)),
    ),
    unique_by=lambda outcome: outcome.position,
)


@given(outcomes)
def test_every_settled_row_gets_its_letter_once_and_new_rows_none(found: list[Outcome]) -> None:
    ended = {outcome.position[0]: outcome for outcome in found}
    rows = RowRanges.of([*ended, *range(3)])
    wanted = dict.fromkeys(rows, Status.SUCCESS) | {number: outcome.status for number, outcome in ended.items()}
    statuses = by_status(rows, ended)
    assert sum(map(len, statuses.values())) == len(set().union(*statuses.values()))
    given_letters = {number: status for status, numbers in statuses.items() for number in numbers}
    assert given_letters == {number: status for number, status in wanted.items() if status is not Status.NEW}


@pytest.mark.parametrize("reason", sorted(set(Reason) - {Reason.PUBLISHED}))
def test_every_reason_but_published_is_recorded(reason: Reason) -> None:
    assert is_noted(Outcome(position=(1,), reason=reason))
    assert not is_noted(Outcome(position=(1,), status=Status.NEW, reason=reason))


def test_what_was_simply_published_needs_no_record() -> None:
    assert not is_noted(Outcome(position=(1,)))
    assert is_noted(Outcome(position=(1,), status=Status.WARNING, note="half done"))


@shares(noted=0.3, nul=0.01)
@given(outcomes)
def test_notes_can_be_kept_by_any_database(found: list[Outcome]) -> None:
    notes = [outcome.note for outcome in found if outcome.note is not None]
    met(noted=notes, nul=any("\0" in note for note in notes))
    for outcome in found:
        note = note_of(outcome)
        assert (note is None) == (not outcome.note)  # an empty text is none, as Oracle has it
        assert note is None or "\0" not in note.encode().decode()


def test_a_superseded_row_names_its_winner() -> None:
    assert note_of(Outcome(position=(1,), reason=Reason.SUPERSEDED, winner=(22,))) == "superseded by 22"
    assert note_of(Outcome(position=(1,), reason=Reason.SUPERSEDED, winner=(22,), note="by type 6")) == "by type 6"
