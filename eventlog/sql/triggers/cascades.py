"""What foreign keys do of their own accord: which tables have rows that one statement may change twice. Pure.

Statement triggers see a row that was changed twice as two rows before and two rows after, and nothing tells which belong
together; a statement's updates are heard before its deletes or after them, as it happens. Row triggers hear each change in
its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

Name = tuple[str | None, str]
"""A table: its schema and its own name."""

DELETES: Final = "CASCADE"
SETS: Final = frozenset({"SET NULL", "SET DEFAULT"})


class Reference(Struct, frozen=True, kw_only=True):
    """A foreign key: whose columns hold which columns of which table, and what happens when those are deleted or changed."""

    table: Name
    columns: frozenset[str]
    referred: Name
    referred_columns: frozenset[str]
    on_delete: str
    on_update: str

    @property
    def deletes(self) -> bool:
        """Whether it deletes rows of its table."""
        return self.on_delete == DELETES

    @property
    def clears(self) -> bool:
        """Whether it updates rows of its table when the others are deleted."""
        return self.on_delete in SETS

    @property
    def follows(self) -> bool:
        """Whether it updates rows of its table when the others change their keys."""
        return self.on_update == DELETES or self.on_update in SETS


def acting(table: Name, references: Iterable[Reference]) -> list[Reference]:
    """The foreign keys of a table that delete or change its rows."""
    return [one for one in references if one.table == table and (one.deletes or one.clears or one.follows)]


def changed_twice_by(table: Name, references: Sequence[Reference]) -> Name | None:
    """A table of which one statement may change or delete rows, and so change a row of this one twice; None without such."""
    own = acting(table, references)
    if not any(one.clears or one.follows for one in own):
        return None  # a row is deleted once, however many foreign keys do so
    reached = _above(table, references)
    return next((root for root in sorted(reached, key=str) if _is_changed_twice(table, root, reached[root])), None)


def _above(table: Name, references: Sequence[Reference]) -> dict[Name, list[Reference]]:
    """Every table from which actions lead to this one, each with all references that take part."""
    found: dict[Name, None] = {table: None}
    waiting = [table]
    while waiting:
        for one in acting(waiting.pop(), references):
            if one.referred not in found:
                found[one.referred] = None
                waiting.append(one.referred)
    parts = [one for name in found for one in acting(name, references)]
    return dict.fromkeys(found, parts)


def _is_changed_twice(table: Name, root: Name, references: list[Reference]) -> bool:
    """Whether a statement that updates and deletes rows of `root`, as a MERGE may, comes to a row of the table twice.

    What the statement itself does is done before any foreign key acts. So a row that it deletes is met by no action, and
    one that it updates is heard as updated before an action deletes it. To be deleted is to be met once, by whatever.
    """
    deleted = _deleted(root, references)
    updates = _updates(root, references, deleted)
    own = [(one, times) for one, times in zip(references, updates, strict=True) if one.table == table]
    if not any(times for _, times in own):
        return False
    # A reference either deletes a row or updates it when the one row changes that it points to.
    met = sum(max(times, one.deletes and (one.referred == root or one.referred in deleted)) for one, times in own)
    return met > 1 or table == root


def _deleted(root: Name, references: list[Reference]) -> set[Name]:
    """The tables of which foreign keys delete rows when some of `root` are deleted."""
    found: set[Name] = set()
    grown = True
    while grown:
        more = {one.table for one in references if one.deletes and (one.referred == root or one.referred in found)}
        grown = not more <= found
        found |= more
    return found


def _updates(root: Name, references: list[Reference], deleted: set[Name]) -> list[int]:
    """How often each reference may update one row; more than twice is twice."""
    times = [0] * len(references)
    while True:
        found = [min(2, _times(one, root, references, times, deleted)) for one in references]
        if found == times:
            return times
        times = found


def _times(one: Reference, root: Name, references: list[Reference], times: list[int], deleted: set[Name]) -> int:
    """How often what the reference points to is deleted or gets another key, so far as is known."""
    by_root = one.referred == root and (one.clears or one.follows)  # a row of the root is either deleted or updated
    by_delete = one.clears and one.referred in deleted
    by_update = sum(
        often
        for other, often in zip(references, times, strict=True)
        if one.follows and other.table == one.referred and other.columns & one.referred_columns
    )
    return by_root + by_delete + by_update
