"""Partitions: their names, where they begin, that every time lies in one, and when one is over."""

from __future__ import annotations

import datetime as dt

from hypothesis import given
from hypothesis import strategies as st

from eventlog.qlik.change_seq import ChangeSeq, time_digits
from eventlog.qlik.change_tables.partitions import Partition, Partitions, read_partition
from tests.support.shares import met, shares

BASE = dt.datetime(1970, 1, 1)


def seq(at: dt.datetime | None) -> str:
    return ChangeSeq(time_digits(at), 1).text


def test_the_name_of_the_manual() -> None:
    found = Partition(start=dt.datetime(2017, 3, 13, 12, 30), end=dt.datetime(2017, 3, 13, 17))
    assert found.name == "20170313T123000_20170313T170000"
    assert read_partition(found.name) == found


@shares(full=0.5)
@given(st.lists(st.datetimes(), min_size=1), st.integers(1, 527_040), st.datetimes())
def test_every_time_lies_in_its_partition_and_they_begin_at_the_base(
    times: list[dt.datetime], minutes: int, base: dt.datetime
) -> None:
    partitions = Partitions(minutes, base)
    met(full=all(partitions.of(seq(at)).start > dt.datetime.min for at in times))
    for at in times:
        found = partitions.of(seq(at))
        hundredth = at.replace(microsecond=at.microsecond // 10_000 * 10_000)
        assert found.start <= hundredth + dt.timedelta(microseconds=9_999)
        assert hundredth <= found.end
        assert found.start == dt.datetime.min or (found.start - base) % dt.timedelta(minutes=minutes) == dt.timedelta()


def test_a_row_without_a_time_stands_in_the_earliest() -> None:
    assert Partitions(60, BASE).of(seq(None)).start == dt.datetime.min


def test_a_partition_is_over_when_a_row_comes_after_it() -> None:
    found = Partitions(60, BASE).of(seq(dt.datetime(2026, 1, 1, 10, 30)))
    assert not found.closed_by(seq(dt.datetime(2026, 1, 1, 10, 59, 59, 990_000)))
    assert found.closed_by(seq(dt.datetime(2026, 1, 1, 11)))
