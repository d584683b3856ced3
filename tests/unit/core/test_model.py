"""The words of the domain: values that cannot change, and numbers that people read."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import (
    ABSENT,
    Change,
    Edit,
    ImageEdits,
    Op,
    Outcome,
    Outcomes,
    Position,
    RowId,
    Status,
    exceptional,
)

ROW = RowId("indirect", "usr", "idu=1")
texts = st.none() | st.text()


def change(*positions: tuple[int, ...]) -> Change:
    return Change(row=ROW, op=Op.ADD, positions=positions)


@pytest.mark.parametrize(
    "positions, event_id",
    [
        ([(1740,)], "1740"),
        ([(1740,), (1742,)], "1740-1742"),
        ([(12,), (10,), (11,)], "10-12"),
        ([(9,), (10,)], "9-10"),
        ([(7, 2)], "7.2"),
        ([(7, 2), (6, 30)], "6.30-7.2"),
    ],
)
def test_an_event_id_names_the_lowest_and_the_highest_event(positions: list[tuple[int, ...]], event_id: str) -> None:
    assert change(*positions).event_id == event_id


@given(st.sets(st.integers(1, 50)), st.sets(st.integers(1, 50)))
def test_outcomes_are_the_list_that_they_stand_for(published: set[int], others: set[int]) -> None:
    refused: dict[Position, Outcome] = {(n,): Outcome(position=(n,), status=Status.ERROR) for n in others}
    positions: list[Position] = [(number,) for number in sorted(published | others)]
    outcomes = Outcomes(positions, refused)
    plain = [refused.get(position) or Outcome(position=position) for position in positions]
    assert list(outcomes) == plain == [outcomes[place] for place in range(len(outcomes))]
    assert outcomes == plain
    assert outcomes[1:3] == plain[1:3]
    assert repr(outcomes) == repr(plain)
    assert outcomes != [*plain, Outcome(position=(51,))]
    assert set(exceptional(outcomes)) == set(refused.values())
    assert exceptional(plain) is plain


@given(st.lists(st.tuples(st.text(), texts, texts)), st.booleans(), st.booleans())
def test_the_edits_of_an_image_are_those_of_its_columns(
    columns: list[tuple[str, str | None, str | None]], has_before: bool, reset: bool
) -> None:
    names = tuple(name for name, _, _ in columns)
    before = [old for _, old, _ in columns] if has_before else None
    after = [new for _, _, new in columns]
    made = ImageEdits(names, before, after, reset=reset)
    edits = tuple(
        Edit(column=name, old=old if has_before else ABSENT, new=new, reset=reset) for name, old, new in columns
    )
    assert made == edits
    assert edits == made
    assert (len(made), bool(made), hash(made)) == (len(edits), bool(edits), hash(edits))
    assert (made[:1], made[1:]) == (edits[:1], edits[1:])
    assert pickle.loads(pickle.dumps(made)) == edits  # noqa: S301  # our own bytes
    told = ImageEdits(names, before, after)
    assert told.changed() == tuple(edit for edit in told if edit.old != edit.new)
    assert made != (*edits, Edit(column="another"))
