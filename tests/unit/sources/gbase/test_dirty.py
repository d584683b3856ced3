"""Reads with rubbish behind them: whatever was read is there, or its loss is told; and where a restart begins."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.core.errors import DamageError, DataError
from eventlog.sources.gbase.files import refuse_dirty
from eventlog.sources.gbase.records import RECORD_BYTES, CdcRecord, Framer, frames
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog_streams_tools.gbase.dirty import dirty_frames, next_header
from eventlog_streams_tools.gbase.dump import Restart, entries
from eventlog_streams_tools.gbase.emulator import buffers, reads, record, shop, table_record
from tests.support.examples import examples
from tests.support.gbase_streams import GOOD, T1, before_damage, begin, commit, insert, read
from tests.support.shares import met, shares

DIRTY = GBaseSettings(dirty=True)
FORMER = table_record(T1) + begin(1) + insert(2, 1) + insert(3, 2) + insert(4, 3) + commit(5)
LATER = begin(11) + insert(12, 4) + commit(13)


def after(*reads_: bytes) -> Iterator[bytes]:
    """The reads of one buffer that had a large one before."""
    return buffers([FORMER, *reads_])


def test_a_record_that_was_left_over_whole_is_not_read_twice() -> None:
    again = FORMER[: len(table_record(T1) + begin(1))]
    found = read(*after(again.replace(b"c1 int", b"c1 INT")), own=DIRTY)
    assert len(found) == 3


@pytest.mark.parametrize("at", [20, 45, 95])
def test_a_cut_that_only_rubbish_follows_is_told(at: int) -> None:
    found, error = before_damage(after(LATER[:at], LATER[at:]), DIRTY)
    assert len(found) == 3
    assert isinstance(error, DamageError)
    assert error.offset >= len(FORMER)


@pytest.mark.parametrize("more", [0, 1, 5, 15, 16, 40, 700])
@pytest.mark.parametrize("ends", [True, False])
def test_a_record_that_is_completed_with_what_was_left_over_is_told(more: int, ends: bool) -> None:
    """Two bytes of the first read stand behind the cut, so that the record seems to end two bytes before it does."""
    first = FORMER + LATER
    cut = len(first) - 2
    stream = begin(21) + b"".join(insert(22 + number, number) for number in range(40)) + commit(70)
    whole = [one for one in Framer().feed(stream) if one.offset + len(one.data) <= cut]
    last = Framer().feed(stream)[len(whole)]
    third = stream[cut : last.offset + len(last.data) + more]
    chunks = [first, stream[:cut] + first[cut:], third, *([] if ends else [LATER])]
    found = chain.from_iterable(dirty_frames(chunks, Framer(), RECORD_BYTES))
    for one in [*Framer().feed(first), *whole]:
        assert next(found).data == one.data
    with pytest.raises(DamageError):
        next(found)


def test_a_record_whose_end_never_comes_is_told() -> None:
    rest = begin(21) + insert(22, 9) + commit(23)
    found, error = before_damage([LATER[:60], rest + bytes(60)], DIRTY)
    assert (len(found), "ended inside a record, and this one begins with another: 20 bytes" in str(error)) == (
        0,
        True,
    )
    found, error = before_damage([LATER[:60]], DIRTY)
    assert "the stream ends inside a record" in str(error)


@pytest.mark.parametrize("reads_", [[b"rubbish" * 5, GOOD], [GOOD, b"short"], [GOOD + b"\0\0\0\x28\0\0\0\0\0", GOOD]])
def test_a_read_that_is_no_record_is_told(reads_: list[bytes]) -> None:
    assert isinstance(before_damage(reads_, DIRTY)[1], DamageError)


def test_a_damaged_header_is_not_taken_for_rubbish() -> None:
    wrong = bytearray(LATER)
    wrong[40 + 11] = 67  # the packet scheme of the row
    for chunks in (after(bytes(wrong)), iter([GOOD, bytes(wrong)]), iter([bytes(wrong)])):
        found, error = before_damage(chunks, DIRTY)
        assert "packet scheme 67" in str(error)
        assert len(found) in (0, 1, 3)


def test_what_stood_in_a_new_buffer_is_left_over() -> None:
    for rubbish in (bytes(40), bytes(5), b"\xff" * 30, b"\xff" * 5, b"ABCDEFGHIJK"):
        assert len(read(GOOD + rubbish, own=DIRTY)) == 1
        assert len(read(*buffers([GOOD + rubbish, LATER]), own=DIRTY)) == 2


@shares(whole=0.03, some=0.1, damaged=0.2)
@examples(60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
@example(seed=7188, cuts=6)  # a COMMIT is cut, and what was left over completes it
@example(seed=1758, cuts=6)  # the same, and a header that was left over follows
@example(seed=2001, cuts=6)  # the same at the very end, behind all changes
@example(seed=24, cuts=3)  # a COMMIT is cut, and what was left over completes it together with the next read
def test_nothing_is_lost_silently_however_reads_are_cut(seed: int, cuts: int) -> None:
    dice = random.Random(seed)
    data = b"".join(reads(shop(15, seed)))
    places = sorted(dice.sample(range(1, len(data)), cuts))
    pieces = [data[low:high] for low, high in zip([0, *places], [*places, len(data)], strict=True)]
    whole = read(data, own=GBaseSettings())
    found, error = before_damage(buffers(pieces), DIRTY)
    met(whole=found == whole, some=found, damaged=error)
    assert found == whole[: len(found)]
    assert error is None or isinstance(error, DamageError)
    assert error is not None or found == whole


def test_a_dump_goes_on_behind_a_record_without_end() -> None:
    rest = begin(21) + insert(22, 9) + commit(23)
    found = list(entries([LATER[:60], rest + bytes(60), GOOD[:50] + bytes(5)], DIRTY))
    titles = [one.title.split(",")[0] for one in found]
    assert titles[:4] == ["1 CDC_REC_BEGINTX", "no record", "1 CDC_REC_BEGINTX", "40 CDC_REC_INSERT"]
    assert [one.damaged for one in found][:2] == [False, True]
    [*_, last] = entries([GOOD + bytes(5)], DIRTY)
    assert (last.title, last.damaged) == ("left over in the buffer", False)
    [*_, last] = entries([GOOD + LATER[:30]], DIRTY)
    assert (last.title, last.damaged) == ("incomplete record", True)


def test_an_unknown_number_is_damage_in_a_dump() -> None:
    unknown = commit(9)[:12] + (77).to_bytes(4, "big") + commit(9)[16:]
    [one] = entries([unknown], GBaseSettings())
    assert (one.damaged, one.problem) == (True, "Record number 77 is not known.")


def test_files_without_lines_are_refused() -> None:
    refuse_dirty([Path("a.hex"), Path("b.HEX")])
    with pytest.raises(DataError, match=r"b\.bin does not say where a read ends"):
        refuse_dirty([Path("a.hex"), Path("b.bin")])


def point(*stream: bytes, own: GBaseSettings | None = None) -> str | None:
    restart = Restart(own or GBaseSettings())
    for found in frames(stream):
        for frame in found:
            restart.take(frame)
    return restart.point.text if restart.point is not None else None


def test_where_a_restart_begins() -> None:
    assert point(table_record(T1)) is None
    assert point(GOOD) == "A restart begins at 0:0x3 (3), the last commit: no transaction is open."
    assert point(GOOD, begin(7, 8), begin(9, 9), insert(10, 1, 9)) == (
        "A restart begins at 0:0x7 (7), where the earliest of 2 open transactions began;"
        " what was committed up to 0:0x3 is done."
    )
    assert point(insert(4, 1)) == "A restart begins at 0:0x4 (4), where the earliest of 1 open transaction began."
    assert point(insert(4, 1), own=GBaseSettings(orphans="skip")) is None
    assert point(GOOD, begin(7, 8), record(CdcRecord.RBTX, 8, 8), record(CdcRecord.TIMEOUT, 3)) == point(GOOD)
    assert point(GOOD, begin(7, 8), insert(8, 1, 8), record(CdcRecord.TRUNCATE, 9, 8, 5)) is not None


def test_headers_are_found_in_the_middle() -> None:
    assert next_header(b"x" * 30 + LATER, 1000) == 30
    assert next_header(b"x" * 30 + LATER[:14], 1000) is None
    assert next_header(b"x" * 8 + b"\0\0\0\x42" + b"x" * 30 + LATER, 1000) == 42
    assert next_header(b"", 1000) is None
