"""Images of random transactions on every database against a model: what the tables held before and after each statement.

`EVENTLOG_TRANSACTIONS=2000` asks for that many. On PostgreSQL the database's own log is the judge: `tests/integration/test_wal2json.py`.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style
from eventlog.sql.dialect import dialect_of
from tests.support import told
from tests.support.random_work import Had, RandomWork, by_object, had_in
from tests.support.servers import databases

TRANSACTIONS = int(os.environ.get("EVENTLOG_TRANSACTIONS", "60"))
A_ROUND = 60
SEED = os.environ.get("EVENTLOG_SEED", "20")


@pytest.mark.in_turn
@pytest.mark.parametrize("database", [*databases(), "postgresql, row triggers"])
def test_messages_and_change_tables_say_what_the_tables_went_through(
    database: str, request: pytest.FixtureRequest
) -> None:
    name, _, kind = database.partition(", ")
    engine: Engine = request.getfixturevalue(name)
    truncates = dialect_of(engine).truncate_triggers
    told.tracked_tables(engine, Style.IMAGE, rows=bool(kind))
    work = RandomWork(engine, Random(SEED), truncates=truncates, watched=True)
    seen: Counter[str] = Counter()
    for start in range(0, TRANSACTIONS, A_ROUND):
        for _ in range(min(A_ROUND, TRANSACTIONS - start)):
            work.transact()
        expected = by_object([change for transaction in work.told for change in transaction])
        catalog, _, changes = told.taken(engine)
        assert by_object([said for _, said in told.messages(changes, catalog)]) == expected
        assert by_object([said for _, said in told.change_rows(changes, catalog)]) == expected
        seen.update(had_in(work.told))
        seen.update(change[1] for transaction in work.told for change in transaction)
        work.told.clear()
    seen.update(work.had)
    wanted = set(Had).difference(() if truncates else (Had.TRUNCATED,))
    assert min(seen[what] for what in ("INSERT", "UPDATE", "DELETE")) > TRANSACTIONS // 4
    assert not [what for what in wanted if not seen[what]], seen
