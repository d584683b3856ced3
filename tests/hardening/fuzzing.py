"""Bytes for decoders: seeds from tests/corpora, and what becomes of them when pieces are flipped, cut, doubled or mixed."""

from __future__ import annotations

import json
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import strategies as st

CORPORA = Path(__file__).resolve().parents[1] / "corpora"
SLOWEST = 10
"""Seconds after which a decoder hangs, whatever it was given up to `LONG` bytes."""
MOST_MEMORY = 64 * 2**20
"""Bytes that a decoder may take for an input of up to `LONG` bytes."""
LONG = 2**18
"""Bytes of a long input."""

NUMBERS = [
    number.to_bytes(size, "big") for size in (1, 2, 4, 8) for number in (0, 1, 2 ** (8 * size - 1), 2 ** (8 * size) - 1)
]
XML = [b"<", b">", b"&#0;", b"]]>", b"<!DOCTYPE x [<!ENTITY a 'b'>]>", b"\xff\xfe", b"\0"]
SIGNS = [b'"', b"\\", b"'", b"=", b"+", b",", b"\n", b"\xed\xa0\x80"]
JSON = [b"null", b"[]", b"{}", b"-1", b"1e999", b'"x"', b"[[[[[[[[", b"{{{{", b"true", b"99999999999999999999"]
TOKENS = [*NUMBERS, *XML, *SIGNS, *JSON]


def corpus(name: str) -> list[bytes]:
    """The seeds of a decoder, found crashes among them."""
    return [path.read_bytes() for path in sorted((CORPORA / name).iterdir())]


@st.composite
def bent(draw: st.DrawFn, value: Any) -> Any:
    """JSON in which something stands that does not belong there."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(
            st.sampled_from([None, True, -1, 2**70, 1.5, "", "x", "ÿ", [], {}, [[]], {"a": []}, "\ud800", "00"])
        )
    if isinstance(value, list):
        place = draw(st.integers(0, len(value) - 1))
        return [draw(bent(one)) if number == place else one for number, one in enumerate(value)]
    name = draw(st.sampled_from(sorted(value)))
    if draw(st.integers(0, 4)) == 0:
        return {other: one for other, one in value.items() if other != name}
    return {**value, name: draw(bent(value[name]))}


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A seed after a few accidents, or bytes that nobody wrote."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=200))
    seed = draw(st.sampled_from(seeds))
    if seed.startswith(b"{") and draw(st.booleans()):
        lines = [json.loads(line) for line in seed.splitlines()]
        line = draw(st.integers(0, len(lines) - 1))
        lines[line] = draw(bent(lines[line]))
        return "\n".join(map(json.dumps, lines)).encode()
    found = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(found)))
        end = min(len(found), start + draw(st.sampled_from([0, 1, 1, 2, 4, 8, 40])))
        piece = bytes(found[start:end])
        other = draw(st.sampled_from(seeds))
        place = draw(st.integers(0, len(other)))
        found[start:end] = draw(
            st.one_of(
                st.sampled_from(TOKENS),
                st.sampled_from([b"", piece * 2, piece * 50, bytes(byte ^ 1 for byte in piece)]),
                st.just(other[place : place + 40]),
                st.binary(min_size=1, max_size=8),
            )
        )
    return bytes(found)


def stretched(seed: bytes) -> list[bytes]:
    """Long inputs: the seed again and again, the middle of it, and one byte of it."""
    third = len(seed) // 3
    middle = seed[third : 2 * third] or seed
    room = LONG - len(seed)
    return [
        seed * (LONG // max(1, len(seed))),
        seed[:third] + middle * (room // len(middle)) + seed[third:],
        seed[:third] + seed[third : third + 1] * room + seed[third:],
    ]


@contextmanager
def bounded() -> Iterator[None]:
    """Ends what takes too long, and finds what takes too much memory."""

    def hangs(_: int, __: FrameType | None) -> None:
        raise AssertionError(f"it takes more than {SLOWEST} s")

    former = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, SLOWEST)
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
        assert peak <= MOST_MEMORY, f"it takes {peak} bytes"
    finally:
        tracemalloc.stop()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)


def survives(decode: Callable[[bytes], object], data: bytes, *accepted: type[Exception]) -> bool:
    """Whether it was read; what cannot be read is said by one of our own errors, and nothing else is raised."""
    with bounded():
        try:
            decode(data)
        except accepted as error:
            words = str(error)
            assert words.strip(), "an error says nothing"
            assert len(words) < 4000, "an error repeats what it was given"
            return False
        return True
