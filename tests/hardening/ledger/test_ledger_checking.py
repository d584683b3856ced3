"""The checker finds what is wrong, and nothing where all is well."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.hardening.ledger.book import Ledger, Op, Place, Version
from tests.hardening.ledger.checking import FIELDS, READ_BACK, Finding, LogRow, Seen, Shown, check
from tests.hardening.ledger.outputs import Growing, rising, same_numbers

RUNS = 20
ONE: Place = (FIELDS, 1)
BACK: Place = (READ_BACK, 1)


class History:
    """A ledger, the log that triggers would have left of it, and what a reader should find."""

    def __init__(self, *versions: tuple[Place, Op, str]) -> None:
        self.ledger = Ledger()
        self.log: list[LogRow] = []
        self.seen: list[Seen] = []
        self.numbers: Counter[Place] = Counter()
        for place, op, end in versions:
            self.add(place, op, end)

    def add(self, place: Place, op: Op, end: str = "S") -> None:
        """One version, published by itself; `end` is the letter of its rows, and why they have it."""
        letter, _, reason = end.partition(" ")
        self.numbers[place] += 1
        number, is_back = self.numbers[place], place[0] == READ_BACK
        text = "" if op == "D" else f"text {number}"
        self.ledger.keep([Version(place=place, number=number, op=op, text=text)])
        kind = {"I": 5 if is_back else 1, "U": 6 if is_back else 2, "D": 4}[op]
        fields = [(None, None)] if is_back or op == "D" else [("version", str(number)), ("note", text)]
        for column, value in fields:
            row = LogRow(
                record=len(self.log) + 1,
                letter=letter,
                kind=kind,
                place=place,
                column=column,
                value=value,
                reason=reason,
            )
            self.log.append(row)
        if reason not in ("vanished", "superseded"):
            told: Op = "U" if is_back and op == "I" else op
            said = (None, None) if op == "D" else (number, text)
            self.seen.append(Seen(place=place, op=told, record=len(self.log), number=said[0], text=said[1]))

    def found(
        self, seen: Sequence[Seen] | None = None, again: dict[int, int] | None = None, **facts: object
    ) -> list[str]:
        """What is wrong when a reader finds this."""
        shown = replace(Shown(output="it", seen=self.seen if seen is None else seen), **facts)
        return sorted(one.what for one in check(self.ledger, self.log, [shown], again or {}))


def simple() -> History:
    """An object of each table that comes, changes, goes and comes again."""
    steps: Sequence[Op] = ("I", "U", "U", "D", "I", "U")
    return History(*[(place, op, "S") for op in steps for place in (ONE, BACK)])


def mixed(seed: int) -> History:
    """Many objects whose changes are mixed."""
    history, dice = History(), random.Random(seed)
    for _ in range(200):
        place = (dice.choice((FIELDS, READ_BACK)), dice.randrange(20))
        history.add(place, "U" if history.numbers[place] else "I")
    return history


def test_where_all_is_well_nothing_is_found() -> None:
    assert simple().found() == mixed(1).found() == []


def drop(seen: list[Seen], dice: random.Random) -> None:
    del seen[dice.randrange(len(seen))]


def double(seen: list[Seen], dice: random.Random) -> None:
    number = dice.randrange(len(seen))
    seen.insert(dice.randrange(number + 1, len(seen) + 1), seen[number])


def swap(seen: list[Seen], dice: random.Random) -> None:
    """Puts two changes of an object in each other's places."""
    place = dice.choice([place for place, count in Counter(one.place for one in seen).items() if count > 1])
    mine = [number for number, one in enumerate(seen) if one.place == place]
    step = dice.randrange(len(mine) - 1)
    former, later = mine[step], mine[step + 1]
    seen[former], seen[later] = seen[later], seen[former]


@pytest.mark.parametrize("spoil, said", [(drop, "lost"), (double, "twice"), (swap, "out of order")])
def test_one_wrong_change_in_a_run_is_found_each_time(
    spoil: Callable[[list[Seen], random.Random], None], said: str
) -> None:
    for seed in range(RUNS):
        history = mixed(seed)
        spoil(history.seen, random.Random(seed))
        found = check(history.ledger, history.log, [Shown(output="it", seen=history.seen)], {})
        assert said in {one.what for one in found}, f"seed {seed}"
        assert all(one.place and one.version and one.record and one.letter for one in found), found


def test_a_reader_who_knows_repeats_is_told_of_none() -> None:
    history = simple()
    history.seen += history.seen[-4:]
    assert history.found(repeats=True) == []
    assert "twice" in history.found()


def test_what_a_row_ended_as_has_to_be_right() -> None:
    history = simple()
    history.add((FIELDS, 2), "I", "N")
    history.add((FIELDS, 3), "I", "E")
    assert history.found() == ["still waits", "wrong letter"]
    assert history.found(answers={history.log[-1].record: "E"}) == ["still waits"]


def test_a_row_that_vanished_or_was_superseded_is_accounted_for_by_a_later_one() -> None:
    history = History((BACK, "I", "W vanished"), (BACK, "D", "S"), (BACK, "I", "S superseded"), (BACK, "U", "S"))
    assert history.found() == []
    assert history.found(history.seen[:-1]) == ["lost", "lost", "wrong value"]


def test_a_last_version_that_the_receiver_refused_is_not_to_be_told() -> None:
    history = History((BACK, "I", "S"), (BACK, "U", "E refused"))
    told = history.seen[:-1]
    assert history.found(told, answers={2: "E"}) == []
    assert history.found(told) == ["wrong letter"]


def test_a_row_that_was_read_back_when_the_object_was_there_again_is_in_order() -> None:
    history = History((BACK, "I", "S"), (BACK, "D", "S"), (BACK, "I", "S"))
    seen = [replace(history.seen[0], number=3, text="text 3"), *history.seen[1:]]
    assert history.found(seen) == []
    assert history.found([*seen[:2], replace(seen[2], number=1)]) == ["out of order", "wrong value"]


def test_values_and_strangers_are_seen() -> None:
    history = simple()
    assert history.found([replace(history.seen[0], text="other"), *history.seen[1:]]) == ["wrong value"]
    for stranger in ((FIELDS, 9), ONE):
        assert history.found([*history.seen, Seen(place=stranger, op="I", record=99)]) == ["never committed"]


def test_what_was_asked_for_again_comes_once_more_and_no_order_is_promised() -> None:
    history, again = simple(), {1: 1, 2: 1}
    assert history.found([*history.seen, history.seen[0]], again) == []
    assert history.found(again=again) == ["lost"]
    history.log[:2] = [replace(row, letter="E") for row in history.log[:2]]
    assert history.found(again=again, answers={2: "E"}) == []


def test_triggers_that_log_too_little_or_too_much_are_seen() -> None:
    history = simple()
    history.ledger.keep([Version(place=(FIELDS, 5), number=1, op="I", text="x")])
    history.log.append(LogRow(record=90, letter="S", kind=4, place=ONE))
    history.log.append(LogRow(record=91, letter="S", kind=4, place=(FIELDS, 6)))
    assert history.found() == ["never committed, in the log"] * 2 + ["not captured"]


def test_numbers_that_fall_or_are_given_twice_are_seen(tmp_path: Path) -> None:
    first, second, third, *_ = simple().seen
    assert rising("it", ["1", "2", "3"]) == []
    assert [one.what for one in rising("it", ["1", "3", "2", "3"])] == ["numbers fell"]
    twice = same_numbers("it", [("1", first), ("2", second), ("1", third)])
    assert [one.what for one in twice] == ["a number was given twice"]
    growing = Growing(tmp_path, "*.csv")
    for name in ("2.csv", "3.csv"):
        (tmp_path / name).touch()
        growing.look()
    assert growing.fell("it") == []
    (tmp_path / "1.csv").touch()
    assert [one.what for one in growing.fell("it")] == ["numbers fell"]


def test_a_finding_names_everything() -> None:
    found = Finding(what="lost", output="it", place=ONE, version=3, record=7, letter="S", why="nobody knows")
    assert str(found) == "lost in it thing 1 version 3 (row 7 S): nobody knows"
