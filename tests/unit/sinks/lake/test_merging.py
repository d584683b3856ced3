"""One merge does what the changes one by one do, in whatever order keys come, go, move and come
again.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from eventlog.core.schema import WHOLE_ROW
from eventlog.qlik.change_tables.folding import ChangeRow, count, fold
from eventlog.sinks.lake.merging import Merge, Merging

KEY = ("k",)
NAMES = ("k", "a", "b")
Rows = dict[Any, dict[str, Any]]


def one_by_one(table: Rows, changes: list[ChangeRow]) -> Rows:
    """The rows as a database has them that does each change when it comes."""
    rows = {key: dict(row) for key, row in table.items()}
    before: dict[str, Any] = {}
    for change in changes:
        key = change.values["k"]
        if change.oper == "B":
            before = change.values
        elif change.oper == "T":
            rows.clear()
        elif change.oper == "D":
            rows.pop(key, None)
        elif change.oper == "I":
            rows[key] = dict(change.values)
        else:
            row = rows.pop(before["k"] if "k" in change.changed else key, dict.fromkeys(NAMES))
            rows[key] = row | {name: change.values[name] for name in change.changed} | {"k": key}
    return rows


def done(table: Rows, merge: Merge) -> Rows:
    """The rows as a lake has them that does the merge: each row that is there is matched once at
    most.
    """
    rows = {} if merge.emptied else {key: dict(row) for key, row in table.items()}
    named = [*merge.gone, *[row.origin for row in merge.rows if row.origin is not None]]
    assert len(named) == len(set(named))
    assert not (merge.emptied and named)
    for (key,) in merge.gone:
        rows.pop(key, None)
    matched = [(row, rows.pop(row.origin[0], None) if row.origin else None) for row in merge.rows]
    for row, there in matched:
        known = there if there is not None and not row.whole else dict.fromkeys(NAMES)
        made = known | row.values
        assert made["k"] not in rows
        rows[made["k"]] = made
    return rows


def history(chance: random.Random, table: Rows, count: int) -> list[ChangeRow]:
    """Changes as a source with these rows can have them."""
    rows, changes = {key: dict(row) for key, row in table.items()}, []
    for number in range(count):
        made: list[ChangeRow] = []
        choice, free = chance.random(), [key for key in range(8) if key not in rows]
        if choice < 0.03:
            made = [ChangeRow(oper="T", values=dict.fromkeys(NAMES), changed=frozenset())]
        elif choice < 0.35 and free:
            values = {"k": chance.choice(free), "a": number, "b": chance.choice([None, number])}
            made = [ChangeRow(oper="I", values=values, changed=frozenset(NAMES))]
        elif rows:
            former = rows[chance.choice(sorted(rows))]
            if choice < 0.5:
                made = [ChangeRow(oper="D", values=dict(former), changed=frozenset(KEY))]
            elif choice < 0.7 and free:
                told = {"k": chance.choice(free), "a": number, "b": None}
                changed = frozenset(chance.sample(["a", "b"], chance.randrange(3))) | {"k"}
                made = [ChangeRow(oper="B", values=dict(former), changed=frozenset())]
                made += [ChangeRow(oper="U", values=told, changed=changed)]
            else:
                told = {"k": former["k"], "a": number, "b": number}
                changed = frozenset(chance.sample(["a", "b"], 1))
                made = [ChangeRow(oper="U", values=told, changed=changed)]
        rows = one_by_one(rows, made)
        changes += made
    return changes


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_a_merge_gives_the_rows_that_its_changes_give(first: int) -> None:
    for seed in range(first, first + 50):
        chance = random.Random(seed)
        table = {key: {"k": key, "a": -key, "b": None} for key in chance.sample(range(8), chance.randrange(6))}
        changes = history(chance, table, chance.randrange(1, 25))
        merge = Merging(KEY).merge(fold(changes, KEY))
        assert done(table, merge) == one_by_one(table, changes), seed


def test_rows_without_a_key_are_counted() -> None:
    rows = [
        ChangeRow(oper=oper, values={WHOLE_ROW: text}, changed=frozenset())
        for oper, text in (("I", "x"), ("I", "y"), ("I", "x"), ("D", "y"), ("D", "y"))
    ]
    assert {key: row.more for key, row in count(rows).rows.items()} == {("x",): 2, ("y",): -1}


def test_keys_that_are_swapped_are_told_by_what_they_were() -> None:
    table = {1: {"k": 1, "a": "one", "b": None}, 2: {"k": 2, "a": "two", "b": None}}
    steps = [(1, 9), (2, 1), (9, 2)]
    changes = []
    for former, key in steps:
        changes += [
            ChangeRow(oper="B", values={"k": former, "a": None, "b": None}, changed=frozenset()),
            ChangeRow(oper="U", values={"k": key, "a": None, "b": None}, changed=frozenset(KEY)),
        ]
    merge = Merging(KEY).merge(fold(changes, KEY))
    rows = done(table, merge)
    assert {key: row["a"] for key, row in rows.items()} == {1: "two", 2: "one"}
