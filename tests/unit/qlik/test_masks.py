"""Masks: the two codecs, the worked examples of the reference, and that reading takes back what writing did."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError
from eventlog.qlik import masks
from eventlog.qlik.masks import (
    MovedMasks,
    bits_of_bytes,
    bits_of_hex,
    bits_to_bytes,
    bits_to_hex,
    pad_bytes,
    pad_hex,
    places_of,
)

CHANGED = [1, 2, 4, 9]
NULLED = [3, 4, 8]
ALL = list(range(10))


def bits_of(places: list[int], offset: int = 0) -> int:
    return sum(1 << (place + offset) for place in places)


@pytest.mark.parametrize(
    "places, offset, binary, text",
    [
        (CHANGED, 7, "000B01", "010B00"),
        (NULLED, 7, "008C", "8C00"),
        (ALL, 7, "80FF01", "01FF80"),
        ([0], 7, "80", "80"),
        ([], 7, "", ""),
        (CHANGED, 5, "C042", "42C0"),
        (NULLED, 5, "0023", "2300"),
        (ALL, 5, "E07F", "7FE0"),
        ([0], 5, "20", "20"),
        (CHANGED, 3, "B010", "10B0"),
        (NULLED, 3, "C008", "08C0"),
        (ALL, 3, "F81F", "1FF8"),
        ([0], 3, "08", "08"),
    ],
)
def test_the_worked_examples(places: list[int], offset: int, binary: str, text: str) -> None:
    bits = bits_of(places, offset)
    assert bits_to_bytes(bits).hex().upper() == binary
    assert bits_to_hex(bits) == text
    assert places_of(bits_of_hex(text), offset) == places
    assert places_of(bits_of_bytes(bytes.fromhex(binary)), offset) == places


@given(st.integers(0, 2**1024 - 1), st.integers(0, 5))
def test_reading_takes_back_what_writing_did_also_with_padding(bits: int, zeros: int) -> None:
    assert bits_of_bytes(bits_to_bytes(bits) + bytes(zeros)) == bits
    assert bits_of_hex("00" * zeros + bits_to_hex(bits)) == bits
    assert bits_of_bytes(pad_bytes(bits, 1024)) == bits_of_hex(pad_hex(bits, 1024)) == bits
    assert bits_of(places_of(bits)) == bits


@pytest.mark.parametrize("mask", [None, "", "  ", "00"])
def test_nothing_is_no_bit(mask: str | None) -> None:
    assert bits_of_hex(mask) == bits_of_bytes(None) == bits_of_bytes(b"") == 0


def test_a_prefix_is_overlooked_and_nonsense_is_not() -> None:
    assert bits_of_hex("0x010B00") == bits_of(CHANGED, 7)
    for nonsense in ("yes", "-1", "+1", "1_0", "\u0661"):
        with pytest.raises(DataError, match=f"'{re.escape(nonsense)}' is no mask"):
            bits_of_hex(nonsense)


def test_a_messages_mask_has_the_width_of_its_columns() -> None:
    assert pad_hex(1, 8) == "0001"
    assert pad_bytes(1, 7) == b"\x01"


@given(st.integers(0, 2**12 - 1), st.permutations(range(12)))
def test_bits_are_moved_to_the_places_of_their_columns(bits: int, order: list[int]) -> None:
    moved = MovedMasks(dict(enumerate(order)))
    expected = sum(1 << order[place] for place in range(12) if bits >> place & 1)
    assert [moved(bits_to_hex(bits)), moved(bits_to_bytes(bits))] == [bits_to_hex(expected), bits_to_bytes(expected)]
    assert moved(bits_to_hex(bits)) == bits_to_hex(expected), "it is kept"


def test_only_so_many_masks_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "KEPT_NUMBERS", 1)
    moved = MovedMasks({0: 1})
    assert [moved("01"), moved("00"), moved("01")] == [bits_to_hex(2), bits_to_hex(0), bits_to_hex(2)]
    assert len(moved) == 1
