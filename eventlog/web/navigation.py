"""What stands beside every page: the state of the log, and each output with its documents a second. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from eventlog.web.addresses import address
from eventlog.web.chart import ceiling, short, thin_out
from eventlog.web.reading import RANGES, OutputView, PageReading
from eventlog.web.verdict import headline
from eventlog.web.words import Kind, StateWord, output_state, word_of

SPARK_WIDTH_PIXELS: Final = 100
SPARK_HEIGHT_PIXELS: Final = 20
SPARK_VALUES: Final = 60
"""As many values as a curve of a few centimetres can show."""

_SHAPES: Final[Mapping[Kind, str]] = {
    "good": "<circle cx='8' cy='8' r='7' fill='#1f883d'/>",
    "calm": "<circle cx='8' cy='8' r='6' fill='none' stroke='#3b82d6' stroke-width='3'/>",
    "warn": "<path d='M8 1 16 15H0z' fill='#d68a00'/>",
    "bad": "<path d='M1 1h14v14H1z' fill='#d1242f'/><path d='M8 3v6M8 11v2' stroke='#fff' stroke-width='2'/>",
    "": "<circle cx='8' cy='8' r='6' fill='none' stroke='#7a828c' stroke-width='2'/>",
}
"""Told apart by their shapes too."""

ICONS: Final[Mapping[Kind, str]] = {
    kind: "data:image/svg+xml,"
    + quote(f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>{shape}</svg>", safe="")
    for kind, shape in _SHAPES.items()
}
MARKS: Final[Mapping[Kind, str]] = {"good": "●", "calm": "○", "warn": "▲", "bad": "■", "": "○"}


class OutputLink(Struct, frozen=True, kw_only=True):
    """An output: its state, documents a second now, and in the last hour as a curve."""

    name: str
    noted: str
    to: str
    word: StateWord
    mark: str
    rate: str
    points: str


class PageState(Struct, frozen=True, kw_only=True):
    """The state of the log, in a word and as an icon, and its outputs."""

    word: StateWord | None
    icon: str
    outputs: tuple[OutputLink, ...] = ()


NO_STATE: Final = PageState(word=None, icon=ICONS[""])
"""What is shown while nobody knows it, or to whom nothing may be told."""


def page_state(reading: PageReading) -> PageState:
    """Say how the log and each output is."""
    word = word_of(headline(reading).state)
    samples = reading.history.of(RANGES[0])
    rates = {
        output.noted: [
            (sample.at, sample.outputs[output.noted].rate) for sample in samples if output.noted in sample.outputs
        ]
        for output in reading.places
    }
    # One scale for all, so that they can be compared.
    top = ceiling("", max((rate for points in rates.values() for _, rate in points), default=0.0))
    outputs = tuple(_link(reading, output, rates[output.noted], top) for output in reading.places)
    return PageState(word=word, icon=ICONS[word.kind], outputs=outputs)


def _link(reading: PageReading, output: OutputView, rates: list[tuple[float, float]], top: float) -> OutputLink:
    word = word_of(output_state(output, reading.flow))
    return OutputLink(
        name=output.name,
        noted=output.noted,
        to=address("output", name=output.noted),
        word=word,
        mark=MARKS[word.kind],
        rate="…" if output.rate is None else f"{short(output.rate)}/s",
        points=_spark(rates, reading.now, top),
    )


def _spark(rates: list[tuple[float, float]], now: float, top: float) -> str:
    """Write the points of a small curve."""
    seconds = RANGES[0].seconds
    recent = [(at, rate) for at, rate in rates if now - seconds <= at <= now]
    points = thin_out(recent, SPARK_VALUES)
    places = [
        (
            round(SPARK_WIDTH_PIXELS * (1 + (at - now) / seconds), 1),
            round((SPARK_HEIGHT_PIXELS - 2) * (1 - rate / top) + 1, 1),
        )
        for at, rate in points
    ]
    # A line of one point cannot be seen.
    if len(places) == 1:
        places = [(places[0][0] - 1, places[0][1]), *places]
    return " ".join(f"{x},{y}" for x, y in places)
