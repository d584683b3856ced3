"""Names of the tables beside a log: told from the log's name alone, short enough for every database, never the same twice."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventlog.sql.names import KEY_ENDING, NAME_BYTES, LogNames
from tests.support.shares import met, shares

logs = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


def test_companions_are_called_after_the_log() -> None:
    names = LogNames(table="indirect_process")
    assert names.outcomes == "indirect_process_outcome"
    assert (names.marks, names.version) == ("indirect_process_mark", "indirect_process_version")


@shares(whole=0.2, cut=0.05)
@given(log=logs | logs.map("event_log_of_the_".__add__))
def test_a_companions_name_fits_into_a_database_that_takes_thirty_bytes(log: str) -> None:
    names = LogNames(table=log)
    met(whole=names.outcomes == f"{log}_outcome", cut=not names.outcomes.startswith(log))
    assert all(len(name.encode()) <= NAME_BYTES for name in names.own[1:])
    assert len((names.version + KEY_ENDING).encode()) <= NAME_BYTES
    assert len(set(names.own)) == 19


@given(log=logs, other=logs)
def test_companions_of_two_logs_never_share_a_name(log: str, other: str) -> None:
    one, two = LogNames(table=log), LogNames(table=other)
    assert (log == other) is (one.outcomes == two.outcomes)
