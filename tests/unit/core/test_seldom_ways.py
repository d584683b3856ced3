"""Ways that are seldom gone, or once in a process: whoever measures coverage may not look then."""

from __future__ import annotations

import pytest

from eventlog.core.errors import EX_CONFIG, OutputError
from eventlog.core.model import EVERY_ROW, Event, Kind, Reason, Status
from eventlog.core.rules import decide
from eventlog.qlik.readings import reading_of
from eventlog.xds import validate
from tests.support.strategies import CATALOG


def test_an_output_says_with_which_code_it_ends() -> None:
    assert OutputError("It names a column that is gone.", exit_code=EX_CONFIG).exit_code == EX_CONFIG


@pytest.mark.parametrize("table", ["nobody", "usr_phone"])
def test_a_whole_table_that_nobody_knows_or_that_is_a_child_is_an_error(table: str) -> None:
    event = Event(position=(1,), kind=Kind.DELETE_ROW, table=table, key=EVERY_ROW, time="2026-01-01 00:00:00")
    [outcome] = decide([event], {}, catalog=CATALOG).outcomes
    assert (outcome.status, outcome.reason) == (Status.ERROR, Reason.INVALID)


def test_each_type_has_a_reading() -> None:
    reading_of.cache_clear()
    assert reading_of("double precision") is not reading_of("timestamp with time zone") is not reading_of("integer")


def test_the_grammar_is_made_once() -> None:
    validate._grammar.cache_clear()
    assert validate._grammar() is validate._grammar()
