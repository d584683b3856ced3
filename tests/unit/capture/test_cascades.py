"""Which tables have rows that foreign keys may change twice in one statement: found for shapes that people make."""

from __future__ import annotations

import pytest

from eventlog.capture.table_needs import Name, Reference, changed_twice_by

KEPT = "NO ACTION"


def name(table: str) -> Name:
    return ("app", table)


def refers(
    table: str, column: str, to: str, *, delete: str = KEPT, update: str = KEPT, referred: str = "id"
) -> Reference:
    return Reference(
        table=name(table),
        columns=frozenset(column.split()),
        referred=name(to),
        referred_columns=frozenset(referred.split()),
        on_delete=delete,
        on_update=update,
    )


ALL = {"delete": "CASCADE", "update": "CASCADE"}
ORDINARY = {
    "one key that follows in all": ("t", [refers("t", "a", "p", **ALL)]),
    "an m:n table whose keys follow in all": ("t", [refers("t", "a", "p", **ALL), refers("t", "b", "q", **ALL)]),
    "lines under orders under customers": ("line", [refers("line", "o", "o", **ALL), refers("o", "c", "c", **ALL)]),
    "nothing acts": ("t", [refers("t", "a", "p"), refers("t", "b", "q")]),
    "one key that acts": ("t", [refers("t", "a", "p", delete="SET NULL", update="CASCADE")]),
    "two keys to two tables": ("t", [refers("t", "a", "p", update="CASCADE"), refers("t", "b", "q", update="CASCADE")]),
    "a row is deleted once, by however many": (
        "t",
        [
            refers("t", "a", "p", delete="CASCADE"),
            refers("t", "b", "p", delete="CASCADE"),
            refers("t", "up", "t", delete="CASCADE"),
        ],
    ),
    "an m:n table": ("t", [refers("t", "a", "p", delete="CASCADE"), refers("t", "b", "q", delete="CASCADE")]),
    "a store and its staff, each with a key to the other": (
        "store",
        [
            refers("store", "manager", "staff", update="CASCADE"),
            refers("staff", "store", "store", update="CASCADE"),
            refers("store", "address", "address", update="CASCADE"),
            refers("staff", "address", "address", update="CASCADE"),
        ],
    ),
    "one way deletes, the other one is of another table": (
        "t",
        [refers("t", "a", "p", delete="CASCADE"), refers("t", "b", "q", delete="SET NULL")],
    ),
}

TWICE = {
    "two keys to one parent": (
        "film",
        "language",
        [
            refers("film", "language", "language", update="CASCADE"),
            refers("film", "original", "language", update="CASCADE"),
        ],
    ),
    "one deletes and the other clears": (
        "t",
        "p",
        [refers("t", "a", "p", delete="CASCADE"), refers("t", "b", "p", delete="SET NULL")],
    ),
    "a tree whose keys change": ("t", "t", [refers("t", "up", "t", update="CASCADE")]),
    "a tree that is pruned by a MERGE": ("t", "t", [refers("t", "up", "t", delete="SET DEFAULT")]),
    "a tree under a parent": (
        "t",
        "p",
        [refers("t", "up", "t", delete="SET NULL"), refers("t", "a", "p", delete="CASCADE")],
    ),
    "two ways from one table above": (
        "t",
        "top",
        [
            refers("p", "x", "top", delete="CASCADE"),
            refers("q", "x", "top", delete="CASCADE"),
            refers("t", "a", "p", delete="CASCADE"),
            refers("t", "b", "q", delete="SET NULL"),
        ],
    ),
    "keys that are handed down by two ways": (
        "t",
        "top",
        [
            refers("p", "x", "top", update="CASCADE"),
            refers("q", "x", "top", update="CASCADE"),
            refers("t", "a", "p", update="CASCADE", referred="x y"),
            refers("t", "b", "q", update="SET NULL", referred="x y"),
        ],
    ),
    "a parent whose own key is changed twice": (
        "t",
        "top",
        [
            refers("p", "x", "top", update="CASCADE"),
            refers("p", "y", "top", update="CASCADE"),
            refers("t", "a b", "p", update="CASCADE", referred="x y"),
        ],
    ),
    "keys that go round": (
        "t",
        "p",
        [refers("t", "a", "p", update="CASCADE", referred="k"), refers("p", "k", "t", update="CASCADE", referred="a")],
    ),
}


@pytest.mark.parametrize("shape", ORDINARY)
def test_an_ordinary_table_keeps_statement_triggers(shape: str) -> None:
    table, references = ORDINARY[shape]
    assert changed_twice_by(name(table), references) is None


@pytest.mark.parametrize("shape", TWICE)
def test_a_row_that_may_be_changed_twice_is_found_and_by_what(shape: str) -> None:
    table, root, references = TWICE[shape]
    assert changed_twice_by(name(table), references) == name(root)


def test_what_stands_between_keys_that_do_not_touch_is_not_reached() -> None:
    """The key of p is not what its reference to the table above changes."""
    references = [
        refers("p", "x", "top", update="CASCADE"),
        refers("q", "x", "top", update="CASCADE"),
        refers("t", "a", "p", update="CASCADE"),
        refers("t", "b", "q", update="CASCADE"),
    ]
    assert changed_twice_by(name("t"), references) is None
