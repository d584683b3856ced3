"""What reaches Oracle's driver in a cycle: every statement is one that Oracle reads, and long texts are bound as LOBs.

Level oracle-syntax where the grammar is asked; no server answers here, the answers are made up.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Any

import oracledb
import pytest
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.capture.plan import plan
from eventlog.capture.preflight import refuse_unfit
from eventlog.care.flow import backlog
from eventlog.config.settings import PublisherConfig
from eventlog.core.errors import InstallError, OccupiedError, SourceError
from eventlog.core.model import Outcome, Reason, RowId, Status
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import Tenure
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.publisher.flow import READY, RETRYING, SUSPENDED, JournalLook
from eventlog.publisher.memory import Stamp
from eventlog.publisher.reader import NEVER_HELD, JournalReader
from eventlog.sources.log.lock import LogLock
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges
from eventlog.sql.log import Log, id_list
from eventlog.sql.names import LogNames
from eventlog.sql.rows import SqlRowReader
from eventlog.tracked.options import TriggerOptions
from tests.oracle.generated import AWKWARD, EVERY_TYPE, PLAIN
from tests.oracle.grammar import Grammar
from tests.oracle.recorder import LONGEST_TEXT_BYTES, Recorder
from tests.support.log_rows import LogRows

pytestmark = pytest.mark.xdist_group("oracle-syntax")
NAMES = LogNames(table="INDIRECT_PROCESS", schema="INDIRECT")
WAITING = (7, 6, "USR", "IDU=1", None, None, None, "2025-03-23 10:57:19.000000", "SCOTT", None, None)


def answers(statement: str) -> Sequence[tuple[Any, ...]]:
    if statement.startswith("SELECT CAST(SYS_EXTRACT_UTC"):
        return [(dt.datetime(2026, 1, 1),)]
    if statement.startswith("SELECT name, position"):
        return [("out", 0, 0, None, None, None, None, None, None, None)]
    if statement.startswith("SELECT COUNT(*), MIN("):
        return [(0, None, None)]
    if statement.startswith("SELECT COUNT(*), MAX("):
        return [(0, None)]
    if statement.startswith(("SELECT MIN(", "SELECT MAX(")):
        return [(None,)]
    if statement.startswith("SELECT COUNT(*)"):
        return [(3,)]
    if "tried" in statement:
        return [(1, "USR", "IDU=1", 1, 60.0) if "attempts" in statement else (1, "USR", "IDU=1")]
    if "AS event_type" in statement:
        return [WAITING]
    if "USR found" in statement or "usr found" in statement:
        return [(0, "Jack", "Frost")]
    return [(0, "22")] if "usr_phone found" in statement else []


def listen(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """An Oracle that listens, whose log is taken to be there."""
    monkeypatch.setattr(Log, "check", lambda _: None)
    monkeypatch.setattr(LogLock, "take", lambda _: True)
    # It keeps nothing, and so never has what the journal wrote last.
    monkeypatch.setattr(JournalReader, "_stamp", lambda *given: Stamp(given[1]))
    monkeypatch.setattr(LogLock, "enter", lambda *_, **__: (NEVER_HELD, "the last"))
    return Recorder(answers)


@pytest.fixture
def oracle(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return listen(monkeypatch)


def cycle(oracle: Recorder, settings: LogSettings, names: LogNames = NAMES) -> None:
    source = LogRows(oracle.engine, names, settings=settings)
    batch = source.read(10)
    outcomes = [
        Outcome(position=(7,), status=Status.NEW, reason=Reason.RETRY, note="later"),
        Outcome(position=(8,), status=Status.WARNING, reason=Reason.VANISHED),
        *(Outcome(position=(number,)) for number in range(100, 200)),
    ]
    source.settle(batch, outcomes)


def read(oracle: Recorder, table: Table, key: str) -> dict[RowId, Any]:
    wanted = {RowId(table.schema, table.name, key): frozenset(table.attributes)}
    return dict(SqlRowReader(oracle.engine, Catalog([table])).rows(wanted))


def look_at_flow(connection: Connection, log: Log, *, future: bool) -> None:
    look = JournalLook(connection, log, PublisherConfig(handle_future_events=future, on_retry="object"))
    look.parts()
    look.oldest(RowRanges(), READY, RETRYING, SUSPENDED)
    look.oldest(look.behind, READY)


@pytest.mark.in_turn
@pytest.mark.parametrize("future, deleting", [(False, False), (True, True)])
def test_a_cycle_says_what_oracle_reads(grammar: Grammar, oracle: Recorder, future: bool, deleting: bool) -> None:
    cycle(oracle, LogSettings(handle_future_events=future, delete_from_log=deleting))
    log = Log(oracle.engine, NAMES)
    backlog(log)
    with log.transaction() as connection:
        look_at_flow(connection, log, future=future)
    assert len(oracle.statements) > 10
    assert [found for found in map(grammar.complaint, set(oracle.statements)) if found] == []


@pytest.mark.parametrize("table", [PLAIN, AWKWARD, EVERY_TYPE], ids=lambda table: table.name)
def test_read_backs_say_what_oracle_reads(grammar: Grammar, oracle: Recorder, table: Table) -> None:
    keys = {"USR": "IDU=1", "EVERY_TYPE": "K=x"}
    read(oracle, table, keys.get(table.name, 'SELECT=a+when="qqo="+Mixed Name=1.5+A:B=2025-03-23 10:57:19'))
    asked = [statement for statement in oracle.statements if "JSON_TABLE" in statement]
    assert len(asked) == (2 if table is PLAIN else 1)
    assert [found for found in map(grammar.complaint, asked) if found] == []


def test_rows_are_found_by_keys_in_a_document_and_gathered(oracle: Recorder) -> None:
    found = read(oracle, PLAIN, "IDU=01")
    row = {"FNAME": "Jack", "LNAME": "Frost", "USR_PHONE.PHONENO": ("22",)}
    assert found == {RowId("INDIRECT", "USR", "IDU=01"): row}
    assert [asked["keys"] for statement, asked in oracle.seen if "JSON_TABLE" in statement] == ["[[0,1]]"] * 2


def test_a_key_that_is_no_value_of_its_column_is_not_asked_for(oracle: Recorder) -> None:
    assert read(oracle, PLAIN, "IDU=Jack") == {}
    assert not [statement for statement in oracle.statements if "JSON_TABLE" in statement]


@pytest.mark.parametrize("long", ["objects", "body", None])
def test_where_one_text_is_longer_than_a_string_all_for_lobs_are_lobs_and_nothing_else(
    oracle: Recorder, long: str | None
) -> None:
    log = Log(oracle.engine, NAMES)
    plan = {"output": "out", "plan": "p", "place": 1, "documents": 1, "attempts": 0}
    texts = {"records": "[1]", "details": "x" * 4000, "objects": "ü" * 2000, "covers": None, "body": "x" * 1001}
    longer = {} if long is None else {long: "ü" * 2001}
    with log.transaction() as connection:
        connection.execute(log.query("planned_make"), plan | texts | longer | {"route": "r"})
    lobs = dict.fromkeys(("body", "covers", "details", "objects", "records", "route"), "DB_TYPE_CLOB")
    sizes = [{name: size.name for name, size in sizes.items()} for sizes in oracle.sizes]
    assert sizes == ([] if long is None else [lobs])


def test_of_many_rows_a_column_is_a_lob_where_one_is_long(oracle: Recorder) -> None:
    log = Log(oracle.engine, NAMES)
    with log.transaction() as connection:
        marks = [{"name": "a", "value": "short"}, {"name": "b", "value": "x" * 5000}]
        connection.execute(log.query("mark_write"), marks)
    assert [sorted(sizes) for sizes in oracle.sizes] == [["value"]]


def test_short_texts_are_no_lobs(oracle: Recorder) -> None:
    cycle(oracle, LogSettings())
    read(oracle, PLAIN, "IDU=1")
    assert oracle.sizes == []


def test_many_numbers_between_batches_and_many_records_reach_oracle(oracle: Recorder) -> None:
    log, numbers = Log(oracle.engine, NAMES), id_list([*range(1_000_000, 1_001_000)])
    bounds = {"ids": numbers, "limit": 10, "plain": 1000}
    query = log.query("waiting_rows", among="among_noted", order="", transaction="", context="")
    outcomes = [
        Outcome(
            position=(number,), status=Status.ERROR, reason=Reason.REFUSED, note="no such customer, says the receiver"
        )
        for number in range(120)
    ]
    source = LogRows(oracle.engine, NAMES)
    source.settle(source.read(10), outcomes)
    with log.transaction() as connection:
        connection.execute(query, bounds)
    long = [
        name
        for _, values in oracle.seen
        if isinstance(values, dict)
        for name, value in values.items()
        if isinstance(value, str) and len(value) > LONGEST_TEXT_BYTES
    ]
    assert "ids" in long


def lease(oracle: Recorder, *, kept: bool) -> LogLock:
    """A lock that this process believes to have, on a database that says whether it does."""
    oracle.answers = lambda statement: [(1,)] if kept and "FOR UPDATE" in statement else answers(statement)
    lock = LogLock(Log(oracle.engine, NAMES), lease=5)
    lock.token, lock.tenure = "token", Tenure(log="log", name="name", epoch=1)
    return lock


@pytest.mark.parametrize("kept", [True, False])
def test_the_row_of_the_lease_is_locked_before_a_mark_is_made(oracle: Recorder, *, kept: bool) -> None:
    """A MERGE reads it as it was: a former holder would commit while somebody else takes over."""
    lock = lease(oracle, kept=kept)
    with lock.log.transaction() as connection, suppress(OccupiedError):
        lock.mark(connection, "holding", "1")
    made = [statement for statement in oracle.statements if "_mark" in statement.lower()]
    assert made[0].startswith("SELECT 1 FROM")
    assert made[0].endswith("FOR UPDATE")
    assert [statement.partition(" ")[0] for statement in made[1:]] == ["MERGE"] * kept


class Said(str):
    """What oracledb puts into its errors: a text with a code."""

    __slots__ = ("code",)

    code: int


def failure(oracle: Recorder, code: int, words: str) -> SourceError:
    """What a read is told when the database says this."""
    said = Said(words)
    said.code = code

    def fail(_: str) -> Sequence[tuple[Any, ...]]:
        raise oracledb.DatabaseError(said)

    oracle.answers = fail
    with pytest.raises(SourceError) as caught:
        LogRows(oracle.engine, NAMES).read(10)
    return caught.value


@pytest.mark.parametrize("code", [257, 18, 20, 2391, 4031, 8103, 16000, 30036, 12516, 12520])
def test_what_passes_when_somebody_acts_is_tried_again_and_says_what_to_do(oracle: Recorder, code: int) -> None:
    refused = f"DPY-6000: cannot connect. Listener refused connection. (Similar to ORA-{code:05})"
    for told in (failure(oracle, code, f"ORA-{code:05}: something"), failure(oracle, 6000, refused)):
        assert told.may_pass
        assert told.hint == ORACLE.errors.advice[code]


@pytest.mark.parametrize("code, may_pass", [(60, True), (8177, True), (942, False), (1, False)])
def test_waiting_is_worth_while_for_deadlocks_and_not_for_missing_tables(
    oracle: Recorder, code: int, may_pass: bool
) -> None:
    told = failure(oracle, code, f"ORA-{code:05}: something")
    assert f"ORA-{code:05}" in str(told)
    assert told.may_pass is may_pass


def test_blocks_of_plsql_keep_their_last_semicolon(oracle: Recorder) -> None:
    log = Log(oracle.engine, NAMES)
    with log.transaction() as connection:
        for query in (log.query("note_outcome"), log.query("mark_write"), log.query("lock_make", until="lock_until")):
            connection.execute(query, {"token": "t", "lease": 1, "name": "n", "value": "v", "records": "[]"})
    blocks = [statement for statement in oracle.statements if statement.startswith(("BEGIN", "DECLARE"))]
    assert len(blocks) >= 3
    assert [block for block in blocks if not block.endswith("END;")] == []


@pytest.mark.parametrize("excluded", [False, True])
@pytest.mark.parametrize("column", ["FNAME", "LNAME"])
def test_a_column_whose_characters_would_be_lost_is_refused_by_its_name(
    oracle: Recorder, column: str, *, excluded: bool
) -> None:
    oracle.answers = lambda statement: [(column,)] if "nls_database_parameters" in statement else []
    options = TriggerOptions(exclude=(column,)) if excluded else TriggerOptions()
    refusal = pytest.raises(InstallError, match=rf"national characters in {column}.*--exclude {column}")
    with oracle.engine.connect() as connection, nullcontext() if excluded else refusal:
        refuse_unfit(connection, plan(replace(PLAIN, children=()), options), NAMES)
