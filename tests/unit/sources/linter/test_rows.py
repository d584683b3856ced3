"""LINTER's queue rows: times, addresses, names; numbers that SQL has signed and the queue means unsigned."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ConfigError, DataError
from eventlog.sources.linter import rows
from eventlog.sources.linter.rows import COLUMNS, address, oper_date, oper_time, queue_row, to_signed, utc_reader
from tests.support.linter import ROW, row, row_of


@pytest.mark.parametrize(
    "raw, expected",
    [
        ("4055836e8000", dt.datetime(2024, 3, 15, 10, 20, 30, 500000)),  # the specification's
        ("00000000ffff", dt.datetime(1990, 1, 1, 0, 0, 0, 999984)),
        ("7fffffff0000", dt.datetime(2058, 1, 19, 3, 14, 7)),
        ("800000000000", dt.datetime(2058, 1, 19, 3, 14, 8)),
        ("ffffffffffff", dt.datetime(2126, 2, 7, 6, 28, 15, 999984)),
    ],
)
def test_oper_date_is_unsigned_and_takes_every_fraction(raw: str, expected: dt.datetime) -> None:
    assert oper_time(bytes.fromhex(raw)) == expected


@pytest.mark.parametrize("size", [0, 4, 5, 7, 8])
def test_oper_date_of_another_length_is_an_error(size: int) -> None:
    with pytest.raises(DataError, match=f"OPER_DATE has {size} bytes"):
        oper_time(bytes(size))


@given(st.binary(min_size=6, max_size=6))
def test_every_oper_date_is_written_as_it_was_read(raw: bytes) -> None:
    assert oper_date(oper_time(raw)) == raw


@given(st.datetimes(dt.datetime(1990, 1, 1), dt.datetime(2126, 2, 7)))
def test_every_time_is_kept_to_the_65536th_of_a_second(time: dt.datetime) -> None:
    assert abs(oper_time(oper_date(time)) - time) <= dt.timedelta(microseconds=16)


def test_numbers_that_arrive_negative_are_unsigned() -> None:
    found = row_of({"TRANSACT_ID": -1, "SYSLOG_ADDR": -2, "ROWID_SRC": -3, "TYP": 8, "BLOBATR": -254})
    assert (found.transact_id, found.syslog_addr, found.rowid_src) == (2**64 - 1, 2**64 - 2, 2**32 - 3)
    assert (found.blob, row(blobatr=517).blob) == ((2, 255), (5, 2))
    assert address(found.syslog_addr) == "4294967295:0xFFFFFFFE"


@given(st.integers(-(2**63), 2**63 - 1))
def test_signed_numbers_come_back(number: int) -> None:
    assert to_signed(number & 2**64 - 1) == number


@pytest.mark.parametrize(
    "padded", ["REMOTE  ", "REMOTE\0\0", b"REMOTE  ", bytearray(b"REMOTE\0 "), memoryview(b"REMOTE  ")]
)
def test_names_lose_their_padding_of_blanks_or_nuls(padded: object) -> None:
    rows._names.cache_clear()
    values = dict(zip(COLUMNS, msgspec.structs.astuple(ROW), strict=True))
    assert row_of({**values, "DST_SERVER": padded}) == ROW


@pytest.mark.parametrize("data", [memoryview(ROW.data), bytearray(ROW.data), ROW.data.hex(), ROW.data + b"rubbish"])
def test_data_comes_as_drivers_have_it_and_ends_where_its_lengths_say(data: object) -> None:
    assert queue_row([*msgspec.structs.astuple(ROW)[:-1], data]) == ROW


def test_a_row_without_its_numbers_is_refused() -> None:
    with pytest.raises(DataError, match="TRANSACT_ID None"):
        row_of({"SYSLOG_ADDR": 1})
    with pytest.raises(DataError, match="'4g' is not binary data"):
        row_of({"SYSLOG_ADDR": 1, "TRANSACT_ID": 1, "DATA": "4g"})


def test_oper_date_in_a_zone_becomes_utc() -> None:
    assert utc_reader("Europe/Moscow")(ROW.oper_date) == dt.datetime(2024, 3, 15, 7, 20, 30, 500000)
    assert utc_reader("UTC")(ROW.oper_date) == oper_time(ROW.oper_date)
    summer = oper_date(dt.datetime(2024, 7, 1, 12))
    assert utc_reader("Europe/Berlin")(summer) == dt.datetime(2024, 7, 1, 10)
    with pytest.raises(ConfigError, match="'Moscow' is no time zone"):
        utc_reader("Moscow")
