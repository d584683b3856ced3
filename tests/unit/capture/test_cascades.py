"""Which tables have rows that foreign keys may change twice in one statement: found for shapes that people make."""

from __future__ import annotations

import pytest

from eventlog.capture.table_needs import CascadingKey, Name, find_table_changed_twice


def name(table: str) -> Name:
    return ("app", table)


def references(text: str) -> list[CascadingKey]:
    """One a line: `t(a b) -> p(x y): delete, update`, with what it does when the other row goes or its key changes."""
    found = []
    for line in text.strip().splitlines():
        keys, _, actions = line.partition(":")
        (table, columns), (other, others) = (side.strip(" )").split("(") for side in keys.split("->"))
        does = {word.strip() for word in actions.split(",")}
        on_delete = {"deletes": "CASCADE", "clears": "SET NULL", "resets": "SET DEFAULT"}
        on_update = {"follows": "CASCADE", "forgets": "SET NULL"}
        found.append(
            CascadingKey(
                table=name(table),
                columns=frozenset(columns.split()),
                referred=name(other),
                referred_columns=frozenset(others.split()),
                on_delete=next((on_delete[word] for word in does if word in on_delete), "NO ACTION"),
                on_update=next((on_update[word] for word in does if word in on_update), "NO ACTION"),
            )
        )
    return found


ORDINARY = {
    "one key that follows in all": "t(a) -> p(id): deletes, follows",
    "an m:n table whose keys follow in all": """
        t(a) -> p(id): deletes, follows
        t(b) -> q(id): deletes, follows""",
    "lines under orders under customers": """
        t(o) -> o(id): deletes, follows
        o(c) -> c(id): deletes, follows""",
    "nothing acts": """
        t(a) -> p(id):
        t(b) -> q(id):""",
    "one key that acts": "t(a) -> p(id): clears, follows",
    "two keys to two tables": """
        t(a) -> p(id): follows
        t(b) -> q(id): follows""",
    "a row is deleted once, by however many": """
        t(a) -> p(id): deletes
        t(b) -> p(id): deletes
        t(up) -> t(id): deletes""",
    "a store and its staff, each with a key to the other": """
        t(manager) -> staff(id): follows
        staff(store) -> t(id): follows
        t(address) -> address(id): follows
        staff(address) -> address(id): follows""",
    "one way deletes, the other one is of another table": """
        t(a) -> p(id): deletes
        t(b) -> q(id): clears""",
    "a key of the parent that is not what its reference to the table above changes": """
        p(x) -> top(id): follows
        q(x) -> top(id): follows
        t(a) -> p(id): follows
        t(b) -> q(id): follows""",
}
TWICE = {
    "two keys to one parent": """
        t(language) -> p(id): follows
        t(original) -> p(id): follows""",
    "one deletes and the other clears": """
        t(a) -> p(id): deletes
        t(b) -> p(id): clears""",
    "a tree under a parent": """
        t(up) -> t(id): clears
        t(a) -> p(id): deletes""",
    "keys that go round": """
        t(a) -> p(k): follows
        p(k) -> t(a): follows""",
}
TWICE_BY_ITSELF = {
    "a tree whose keys change": "t(up) -> t(id): follows",
    "a tree that is pruned by a MERGE": "t(up) -> t(id): resets",
}
TWICE_FROM_ABOVE = {
    "two ways from one table above": """
        p(x) -> top(id): deletes
        q(x) -> top(id): deletes
        t(a) -> p(id): deletes
        t(b) -> q(id): clears""",
    "keys that are handed down by two ways": """
        p(x) -> top(id): follows
        q(x) -> top(id): follows
        t(a) -> p(x y): follows
        t(b) -> q(x y): forgets""",
    "a parent whose own key is changed twice": """
        p(x) -> top(id): follows
        p(y) -> top(id): follows
        t(a b) -> p(x y): follows""",
}
CASES = [
    *[(text, None) for text in ORDINARY.values()],
    *[(text, "p") for text in TWICE.values()],
    *[(text, "t") for text in TWICE_BY_ITSELF.values()],
    *[(text, "top") for text in TWICE_FROM_ABOVE.values()],
]


@pytest.mark.parametrize("text, root", CASES, ids=[*ORDINARY, *TWICE, *TWICE_BY_ITSELF, *TWICE_FROM_ABOVE])
def test_a_row_that_may_be_changed_twice_is_found_and_by_what(text: str, root: str | None) -> None:
    assert find_table_changed_twice(name("t"), references(text)) == (None if root is None else name(root))
