"""Rows with decimals of any bytes, rows held together, and updates whose halves are apart."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.sources.gbase.layout import CapturedLayout, layout_of
from eventlog.sources.gbase.records import CdcRecord, place_of
from eventlog.sources.gbase.rows import GBaseRowReader
from eventlog.sources.gbase.values import TextRules
from eventlog.sources.stream.transactions import Transactions
from eventlog_streams_tools.gbase.emulator import row_record, table_record
from tests.support.gbase_streams import T1, begin, commit, insert, read, row
from tests.support.shares import met, shares
from tests.support.strategies_gbase import decimals
from tests.unit.sources.stream.test_transactions import Shelf

PAIRS = st.sampled_from([0, 0, 0, 1, 10, 50, 99, 100, 255])
FIRST = st.sampled_from([0, 0x3B, 0x3D, 0x3E, 0x3F, 0x40, 0x7F, 0x80, 0xC0, 0xC1, 0xC2, 0xC6, 0xD0, 0xFF])


def number_of(data: bytes) -> Fraction:
    """What the bytes of a decimal say, pair by pair."""
    negative = not data[0] & 0x80
    pairs = list(data[1:])
    if negative and any(pairs):
        last = max(at for at, pair in enumerate(pairs) if pair)
        pairs = [(100 if at == last else 99) - pair if at <= last else 0 for at, pair in enumerate(pairs)]
    exponent = ((~data[0] if negative else data[0]) & 0x7F) - 64
    parts = [Fraction(pair) * Fraction(100) ** (exponent - place) for place, pair in enumerate(pairs, 1)]
    value = sum(parts, Fraction(0))
    return -value if negative else value


@shares(read=0.05, refused=0.1)
@given(decimals, FIRST, st.lists(PAIRS, min_size=18, max_size=18))
@example("decimal(4,2)", 0x3E, [0] * 18)  # a negative number of no size, which no server writes
@example("decimal(5,1)", 0xC2, [1, 2, 35, *[0] * 15])  # half a pair more than the type has
def test_any_bytes_of_a_decimal_are_read_pair_by_pair(kind: str, first: int, pairs: list[int]) -> None:
    layout: CapturedLayout = layout_of(1, f"c1 {kind}")
    data = bytes((first, *pairs))[: layout.fixed_bytes]
    said, found = "", None
    try:
        found = GBaseRowReader(layout, TextRules())(bytes(36) + data, 36)["c1"]
    except DataError as error:
        said = str(error)
    met(read=not said, refused=bool(said))
    if said:
        assert re.search("no pair|outside", said)
        return
    if first == 0:
        assert found is None
    else:
        assert isinstance(found, Decimal)
        assert Fraction(found) == number_of(data)


@shares(several=0.2)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=30), st.booleans())
def test_items_held_together_are_items_held_one_by_one(runs: list[tuple[int, int]], orphans: bool) -> None:
    """Runs of one transaction each; the first of a transaction may come before anything has opened it."""
    met(several=len({tx for tx, _ in runs}) > 1)
    said: tuple[list[str], list[str]] = ([], [])
    one, together = (Transactions[str](None, 10**9, report=said[at].append, orphans=orphans) for at in range(2))
    seq = 0
    for place, (tx, count) in enumerate(runs):
        run = [(seq + at, f"{tx}.{seq + at}") for at in range(count)]
        seq += count
        for number, item in run:
            one.add(tx, number, item, 3)
        together.extend(tx, run, 3 * count)
        if place == len(runs) // 2:
            one.begin(9, seq)
            together.begin(9, seq)
    assert (said[0], one.held, len(one)) == (said[1], together.held, len(together))
    for tx in range(1, 4):
        assert list(one.commit(tx, seq)) == list(together.commit(tx, seq))


def test_rows_held_together_are_spilled_when_they_are_too_many() -> None:
    tight: Transactions[str] = Transactions(Shelf, 4)
    tight.begin(1, 1)
    for seq in range(2, 20, 3):
        tight.extend(1, [(seq + at, f"{seq + at}") for at in range(3)], 3)
        assert tight.held <= 4
    assert Shelf.lying == 1
    assert list(tight.commit(1, 20)) == [str(seq) for seq in range(2, 20)]
    assert Shelf.lying == 0


def test_a_row_of_another_table_comes_between_the_halves_of_an_update() -> None:
    other = layout_of(6, "c1 integer, c2 varchar(20,0)")
    strange = row_record(CdcRecord.INSERT, 5, 7, other, {"c1": 9, "c2": "b"})
    found = read(
        table_record(T1) + table_record(other) + begin(1),
        insert(2, 1)
        + row(CdcRecord.UPDBEF, 3, 1)
        + strange
        + row(CdcRecord.UPDAFT, (7 << 32) + 0x1AB, 2)
        + commit(9 << 32),
    )
    told_of = [(one.table, one.op.value, (one.before or {}).get("c1"), (one.after or {}).get("c1")) for one in found]
    assert told_of == [
        ("shop.t1", "add", None, 1),
        ("shop.t1", "modify", 1, None),
        ("table_6", "add", None, 9),
        ("shop.t1", "modify", None, 2),
    ]
    assert [one.stream for one in found] == [place_of(2), place_of(3), place_of(5), "7:0x1AB"]
    assert [one.last for one in found] == [False, False, False, True]


def test_a_transaction_of_very_many_rows_is_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.sources.gbase.images.PIECE_IMAGES", 2)
    found = read(table_record(T1) + begin(1), *[insert(seq, seq) for seq in range(2, 9)], commit(9))
    assert [(one.after or {})["c1"] for one in found] == list(range(2, 9))
    assert [one.last for one in found] == [False] * 6 + [True]


def test_a_table_described_again_as_it_was_is_the_same_table() -> None:
    other = layout_of(6, "c1 integer")
    found = read(table_record(T1) + begin(1) + insert(2, 1) + table_record(other) + insert(3, 2) + commit(4))
    assert [(one.table, (one.after or {})["c1"]) for one in found] == [("shop.t1", 1), ("shop.t1", 2)]


def test_a_decimal_with_the_scale_255_floats() -> None:
    layout = layout_of(1, "c1 decimal(5,255)")
    record = row_record(CdcRecord.INSERT, 1, 1, layout, {"c1": Decimal("0.001")})
    assert GBaseRowReader(layout, TextRules())(record, 36) == {"c1": Decimal("0.001")}


def test_rows_that_waited_are_read_as_their_table_was_described_then() -> None:
    later = layout_of(5, "c1 integer, c3 integer, c2 varchar(20,0)")
    new = row_record(CdcRecord.INSERT, 6, 9, later, {"c1": 3, "c2": "a", "c3": 4})
    found = read(
        table_record(T1) + begin(1, 7) + insert(2, 1, 7) + begin(3, 8) + insert(4, 2, 8) + table_record(later),
        begin(5, 9) + new + commit(7, 7) + commit(8, 9) + commit(9, 8),
    )
    assert [sorted(one.after or {}) for one in found] == [["c1", "c2"], ["c1", "c2", "c3"], ["c1", "c2"]]


def test_of_a_long_value_that_cannot_be_read_the_beginning_is_shown() -> None:
    layout = layout_of(1, "c1 char(60)")
    with pytest.raises(DataError, match=rf"the column c1 holds no char\(60\) \({'ff' * 40}…\): "):
        GBaseRowReader(layout, TextRules())(bytes(36) + b"\xff" * 60, 36)
