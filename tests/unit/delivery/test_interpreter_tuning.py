"""Haste: threads take turns more often and garbage is looked for less often, until the last who is in haste has ended."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from eventlog.delivery.lanes import COLLECT_VALUES, TURN_SECONDS, InterpreterPace, haste


def same(pace: InterpreterPace, other: InterpreterPace) -> bool:
    """Whether they are alike; the interpreter counts turns in whole microseconds."""
    return pace.thresholds == other.thresholds and pace.turn == pytest.approx(other.turn, abs=1e-6)


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_it_does_not_matter_who_ends_first(first: int) -> None:
    before = InterpreterPace.now()
    stacks = ExitStack(), ExitStack()
    for stack in stacks:
        stack.enter_context(haste())
    stacks[first].close()
    assert same(InterpreterPace.now(), before.hastened())
    stacks[1 - first].close()
    assert same(InterpreterPace.now(), before)


def test_who_asked_for_more_haste_or_for_no_garbage_collection_keeps_it() -> None:
    quicker = InterpreterPace(turn=TURN_SECONDS / 10, thresholds=(0, 10, 10))
    assert quicker.hastened() == quicker
    lazier = InterpreterPace(turn=TURN_SECONDS, thresholds=(COLLECT_VALUES * 2, 10, 10))
    assert lazier.hastened() == lazier
