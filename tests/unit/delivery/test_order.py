"""Whose turn it is: objects keep their order, a document without objects goes alone, and nobody waits without need."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import RowId
from eventlog.delivery.lanes import Turns, predecessors

A, B, C = (RowId(None, "usr", f"idu={number}") for number in (1, 2, 3))

Documents = Sequence[frozenset[RowId]]
documents = st.lists(st.frozensets(st.sampled_from([A, B, C]), max_size=3), max_size=12)


def excludes(one: frozenset[RowId], other: frozenset[RowId]) -> bool:
    """Whether two documents may not change places: written down a second time, without any cleverness."""
    return not one or not other or bool(one & other)


@given(documents)
def test_who_must_not_change_places_waits_directly_or_by_others(documents: Documents) -> None:
    before = predecessors(documents)
    behind: list[set[int]] = []
    for numbers in before:
        behind.append({one for number in numbers for one in (number, *behind[number])})
    for number, objects in enumerate(documents):
        needed = {one for one in range(number) if excludes(documents[one], objects)}
        assert needed <= behind[number]
        assert {one for one in before[number] if not excludes(documents[one], objects)} == set()


@given(documents, st.data(), st.integers(1, 5))
def test_each_goes_once_and_nobody_overtakes(documents: Documents, data: st.DataObject, most: int) -> None:
    turns = Turns(documents)
    on_the_way: list[int] = []
    sent: list[int] = []
    answered: set[int] = set()
    while len(answered) < len(documents):
        while len(on_the_way) < most and (number := turns.next()) is not None:
            earlier = {one for one in range(number) if excludes(documents[one], documents[number])}
            assert earlier <= answered
            on_the_way.append(number)
            sent.append(number)
        assert on_the_way, "there is always one that may go"
        done = on_the_way.pop(data.draw(st.integers(0, len(on_the_way) - 1), label="answered next"))
        answered.add(done)
        turns.note_answer(done)
    assert sorted(sent) == list(range(len(documents)))
    assert turns.next() is None


@given(documents)
def test_whoever_may_go_is_not_kept_and_goes_in_order(documents: Documents) -> None:
    """With room for everybody those go at once that nothing before them excludes."""
    turns = Turns(documents)
    first = []
    while (number := turns.next()) is not None:
        first.append(number)
    free = [n for n, mine in enumerate(documents) if not any(excludes(other, mine) for other in documents[:n])]
    assert first == free
