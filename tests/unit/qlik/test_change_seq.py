"""change_seq: what it looks like, that it never runs backwards, that it goes on after a restart."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.core.model import Change, Op, RowId, Transaction
from eventlog.qlik.change_seq import START, ChangeSeq, Sequencer, time_digits, time_of, utc
from tests.support.shares import met, shares

EXAMPLE = "20240506070809120000000000000004711"


def change(time: dt.datetime | str | None, commit: dt.datetime | None = None) -> Change:
    transaction = None if commit is None else Transaction(id=1, time=commit)
    return Change(row=RowId(None, "t", "a=1"), op=Op.ADD, positions=((1,),), time=time, transaction=transaction)


def test_the_example_of_the_manual() -> None:
    assert ChangeSeq.parse(EXAMPLE) == ChangeSeq("2024050607080912", 4711)
    assert ChangeSeq.parse(EXAMPLE).text == EXAMPLE
    before = ChangeSeq("2024050607080912", 4710).text
    assert Sequencer(before).next(change(dt.datetime(2024, 5, 6, 7, 8, 9, 129_999))) == EXAMPLE


@pytest.mark.parametrize("text", ["1", "x" * 35, EXAMPLE + "0", "٣" * 35])
def test_what_is_no_change_seq_is_said(text: str) -> None:
    with pytest.raises(DataError, match="35 digits"):
        ChangeSeq.parse(text)


times = st.none() | st.datetimes(timezones=st.none() | st.just(dt.UTC)) | st.text(max_size=30)


@shares(restarted=0.08, untimed=0.2)
@given(st.lists(times, max_size=20), st.integers(0, 20))
def test_it_always_grows_by_one_and_a_restart_makes_no_difference(
    clocks: list[dt.datetime | str | None], cut: int
) -> None:
    met(restarted=0 < cut < len(clocks), untimed={time_digits(time) for time in clocks} & {"0" * 16})
    through = Sequencer("")
    given_out = [through.next(change(time)) for time in clocks]
    assert given_out == sorted(set(given_out))
    assert [ChangeSeq.parse(text).number for text in given_out] == list(range(1, len(clocks) + 1))
    first = Sequencer("")
    resumed = [first.next(change(time)) for time in clocks[:cut]]
    again = Sequencer(resumed[-1] if resumed else "")
    assert resumed + [again.next(change(time)) for time in clocks[cut:]] == given_out
    assert through.last == (given_out[-1] if given_out else START.text)


@pytest.mark.parametrize(
    "text, found",
    [
        ("2025-03-23 10:57:19.25", dt.datetime(2025, 3, 23, 10, 57, 19, 250_000)),
        ("2025-03-23T10:57:19.123456789Z", dt.datetime(2025, 3, 23, 10, 57, 19, 123_456)),
        ("2025-03-23 12:57:19+02", dt.datetime(2025, 3, 23, 10, 57, 19)),
        ("2025-03-23 12:57+02:00", dt.datetime(2025, 3, 23, 10, 57)),
        ("2025-03-23", dt.datetime(2025, 3, 23)),
        ("2025-02-30", None),
        ("soon", None),
        ("0001-01-01 00:00:00+14", None),
    ],
)
def test_times_are_read_as_utc(text: str, found: dt.datetime | None) -> None:
    assert utc(text) == found


def test_a_change_stands_at_its_commit_else_where_it_was_made() -> None:
    made, committed = dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)
    assert [time_of(change(made, committed)), time_of(change(made))] == [committed, made]


@shares(restarted=0.08)
@given(st.lists(st.none() | st.datetimes(), max_size=20), st.integers(0, 20))
def test_times_in_digits_are_numbered_as_changes_are_also_from_the_middle_on(
    clocks: list[dt.datetime | None], cut: int
) -> None:
    met(restarted=0 < cut < len(clocks))
    through = Sequencer(EXAMPLE)
    given_out = [through.next(change(time)) for time in clocks]
    stamps = [time_digits(time) for time in clocks]
    rest = Sequencer(ChangeSeq.parse(EXAMPLE).later(len(stamps[:cut]), max(stamps[:cut], default="")).text)
    assert list(map(Sequencer(EXAMPLE).step, stamps)) == given_out
    assert list(map(rest.step, stamps[cut:])) == given_out[cut:]
    assert rest.last == (given_out or [EXAMPLE])[-1]
