"""The kept corpus of the coverage-guided fuzzer: read whole, byte by byte, and with every byte damaged in turn."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.gbase_fuzzed import read_alike, row_reads_again
from tests.support.gbase_streams import before_damage
from tests.support.shares import met, shares

CORPORA = Path(__file__).resolve().parents[3] / "corpora"
STREAMS = sorted((CORPORA / "gbase").iterdir())
ROWS = sorted((CORPORA / "gbase_rows").iterdir())


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.name)
def test_a_kept_stream_is_read_alike_in_any_cut(path: Path) -> None:
    data = path.read_bytes()
    read_alike(data)
    read_alike(data + b"\0\0\0")
    images, error = before_damage([data])
    assert images or error or len(data) < 200


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.name)
def test_a_kept_row_is_read_again_as_it_was_read(path: Path) -> None:
    data = path.read_bytes()
    assert data
    row_reads_again(data)
    for at in range(len(data)):
        for wrong in (0, 1, 0x63, 0x64, 0x7F, 0x80, 0xFF):
            row_reads_again(data[:at] + bytes((wrong,)) + data[at + 1 :])


@shares(read=0.1, damaged=0.2)
@given(st.sampled_from(STREAMS), st.data())
def test_a_damaged_stream_is_read_alike_in_any_cut(path: Path, data: st.DataObject) -> None:
    stream = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        if stream:
            stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    read_alike(bytes(stream))
    images, error = before_damage([bytes(stream)])
    met(read=images, damaged=error)
    assert error is None or len(str(error)) < 2000
