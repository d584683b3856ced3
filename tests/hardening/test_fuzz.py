"""Decoders against bytes that nobody meant: they read them or say what is wrong, in time and in bounded memory."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventlog.core.errors import EventlogError
from tests.hardening import fuzzing
from tests.hardening.decoders import DECODERS
from tests.hardening.fuzzing import LONG, MOST_MEMORY, corpus, mutated, stretched, survives
from tests.hardening.quantity import scaled

fuzzed = settings(
    max_examples=scaled(100), deadline=None, suppress_health_check=list(HealthCheck), print_blob=True, database=None
)


each_decoder = pytest.mark.parametrize("name", DECODERS)


@each_decoder
@fuzzed
@given(data=st.data())
def test_a_decoder_survives_accidents(name: str, data: st.DataObject) -> None:
    assert survives(DECODERS[name], data.draw(mutated(corpus(name))), EventlogError) in (True, False)


@each_decoder
def test_the_corpus_is_read_or_refused_in_words(name: str) -> None:
    found = [survives(DECODERS[name], seed, EventlogError) for seed in corpus(name)]
    assert any(found), "nothing of the corpus is whole, so fuzzing would only try the first check"


@each_decoder
def test_long_inputs_take_no_more_than_the_bounds(name: str) -> None:
    for long in (piece for seed in corpus(name)[:2] for piece in stretched(seed)):
        assert LONG - 4096 * 4 <= len(long) <= LONG
        assert survives(DECODERS[name], long, EventlogError) in (True, False)


def test_the_bounds_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="it takes"):
        survives(lambda _: bytearray(MOST_MEMORY + 1), b"x", EventlogError)
    with pytest.raises(ZeroDivisionError):
        survives(lambda data: len(data) // 0, b"x", EventlogError)
    monkeypatch.setattr(fuzzing, "SLOWEST", 0.05)
    with pytest.raises(AssertionError, match="more than"):
        survives(lambda _: [0 for _ in iter(int, 1)], b"x", EventlogError)
