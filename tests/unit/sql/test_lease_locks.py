"""Every statement that speaks for whoever has the lock locks the row of the lease, on every database.

Without that a former holder can commit while somebody else takes the lock over. That a lock holds, servers say
(tests/hardening); these texts are what SQLite and Oracle have in their place.
"""

from __future__ import annotations

import re

import pytest

from eventlog.databases.mysql.dialect import MYSQL
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.postgresql.dialect import POSTGRESQL
from eventlog.databases.sqlite.dialect import SQLITE
from eventlog.sql.dialect import Dialect, offers, texts

DATABASES = (SQLITE, POSTGRESQL, MYSQL, ORACLE)
LOCKING = re.compile(r"\bFOR (?:SHARE|UPDATE)\b|\bLOCK IN SHARE MODE\b")


def locks(dialect: Dialect, query: str) -> bool:
    """Whether the statement locks the row of the lease while it looks at the token; SQLite has one writer."""
    text = texts(dialect)[query]
    changes_the_row = bool(re.match(r"(?:UPDATE|DELETE FROM) /\* marks \*/", text)) and "name = 'publisher'" in text
    return changes_the_row or bool(LOCKING.search(text)) or dialect.lone_writer


@pytest.mark.parametrize("dialect", DATABASES, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("query", ["lock_mark", "lock_keep"])
def test_what_makes_a_mark_locks_the_row_of_the_lease_or_comes_behind_what_does(dialect: Dialect, query: str) -> None:
    if offers(dialect, "lock_hold"):
        query = "lock_hold"
    assert locks(dialect, query)
    assert ":token" in texts(dialect)[query]


@pytest.mark.parametrize("dialect", DATABASES, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("query", ["lock_keep", "lock_replace", "lock_leave"])
def test_what_renews_takes_over_or_leaves_changes_that_row_itself(dialect: Dialect, query: str) -> None:
    assert locks(dialect, query)


@pytest.mark.parametrize("dialect", DATABASES, ids=lambda dialect: dialect.name)
def test_nobody_waits_for_who_takes_the_lock_over(dialect: Dialect) -> None:
    assert dialect.lone_writer or "SKIP LOCKED" in texts(dialect)["lock_grasp"]


ALONE = {"done_at_once", "journal_enter", "keep_shape", "lock_hold", "plan_at_once"}
"""What one database alone has: others do it by several statements, or have nothing to lock."""


@pytest.mark.parametrize("dialect", DATABASES, ids=lambda dialect: dialect.name)
def test_what_locks_rows_on_one_database_does_so_on_each(dialect: Dialect) -> None:
    named = [item for one in DATABASES for item in texts(one).items()]
    locking = {query for query, text in named if LOCKING.search(text)}
    assert {"journal_lock", "lock_grasp", "lock_mark", "lock_hold"} <= locking
    behind = {"lock_mark"} if offers(dialect, "lock_hold") else set()
    there = {query for query in locking - behind if offers(dialect, query)}
    assert locking - behind - there <= ALONE | ({"lock_grasp"} if dialect.lone_writer else set())
    assert [query for query in there if not locks(dialect, query)] == []
