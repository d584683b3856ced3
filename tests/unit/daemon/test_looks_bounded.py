"""Whoever writes the marks of tables keeps a publisher looking for one turn, and not without an end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from eventlog.core.errors import ChangedError
from eventlog.daemon.workers import MOST_LOOKS, Line
from eventlog.publisher.turn_report import Turn


class Looks:
    """A consumer whose tables have always changed since it looked, after so many looks not any more."""

    name = "out"

    def __init__(self, changes: int) -> None:
        self.changes, self.turns, self.looked = changes, 0, 0
        self.decider = cast("Any", SimpleNamespace(looks=SimpleNamespace(note=lambda _causes: None)))

    def turn(self, _tenure: object) -> Turn:
        self.turns += 1
        return Turn(stale=frozenset()) if self.turns <= self.changes else Turn(moved=True)

    def look_again(self, decider: Any) -> Any:
        self.looked += 1
        return decider


def line_of(looks: Looks) -> Line:
    return Line(cast("Any", looks), cast("Any", SimpleNamespace(delivered=lambda *_: None)), looks.look_again)


def test_tables_that_change_at_every_look_end_the_turn_and_are_waited_for() -> None:
    looks = Looks(changes=1_000)
    with pytest.raises(ChangedError, match="tried again later") as caught:
        line_of(looks).turn(cast("Any", None))
    assert (looks.looked, caught.value.may_pass) == (MOST_LOOKS, True)


def test_tables_that_stay_as_they_are_go_on_in_the_same_turn() -> None:
    looks = Looks(changes=MOST_LOOKS)
    assert line_of(looks).turn(cast("Any", None)).moved
    assert looks.looked == MOST_LOOKS
