"""Outputs as the page names them: as their notes do, and without what is secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.config.build import NAME_CHARACTERS, outputs_of
from eventlog.config.outputs import DatabaseOutput, FilesOutput, HttpOutput, KafkaOutput, OutputConfig, StdoutOutput
from eventlog.config.settings import Config
from eventlog.delivery.output import OutputState
from eventlog.sources.marks import as_text
from eventlog.sources.notes import Planned, Progress
from eventlog.web.collector import named_outputs, with_standings
from eventlog.web.reading import OutputView


def names(*outputs: OutputConfig) -> list[str]:
    return [place.name for place in named_outputs(Config(output=outputs))]


def test_names_are_those_of_the_notes(tmp_path: Path) -> None:
    outputs = (
        FilesOutput(path=str(tmp_path / "out")),
        HttpOutput(url="https://idm.example.net:8443/xds?key=hidden#part"),
        StdoutOutput(),
    )
    made = outputs_of(Config(output=outputs))
    try:
        assert names(*outputs) == [output.name for output in made]
        assert [place.noted for place in named_outputs(Config(output=outputs))] == [output.name for output in made]
    finally:
        for output in made:
            output.sink.close()
    assert names() == ["stdout"]


def test_a_long_name_is_that_of_its_notes(tmp_path: Path) -> None:
    output = FilesOutput(path=str(tmp_path / ("long" * 50)))
    [place], [made] = named_outputs(Config(output=(output,))), outputs_of(Config(output=(output,)))
    made.sink.close()
    assert len(place.noted) <= NAME_CHARACTERS < len(place.name)
    assert place.noted == made.name


@pytest.mark.parametrize(
    "note, position, document, on_the_way",
    [
        (None, (7,), "0007", 0),
        (Progress(done="8..9", planned=(Planned("0011", "10..11"),), after="0009"), (9,), "0009", 1),
        (Progress(done="3"), (7,), "0007", 0),
        ("no note", (7,), "0007", 0),
        ('{"done": "x"}', (7,), "0007", 0),
    ],
)
def test_notes_know_more_than_what_was_entered_before(
    note: Progress | str | None, position: tuple[int], document: str, on_the_way: int
) -> None:
    place = OutputView(name="here", noted="there", format="xds")
    notes = {} if note is None else {"there": note if isinstance(note, str) else as_text(note)}
    [found] = with_standings([place], {"there": OutputState(document="0007", position=(7,), at=1.0)}, notes)
    assert (found.standing.position, found.standing.document, found.on_the_way) == (position, document, on_the_way)


@pytest.mark.parametrize(
    "output",
    [
        HttpOutput(url="https://idm.example.net/xds?token=hidden", authorization="hidden"),
        DatabaseOutput(url="postgresql+psycopg://u:hidden@db.example.net:5432/app?password=hidden"),
        KafkaOutput(servers="kafka:9092", topic="changes"),
    ],
    ids=lambda output: str(type(output).__name__),
)
def test_names_have_no_secrets(output: OutputConfig) -> None:
    [name] = names(output)
    assert "hidden" not in name
    assert name.split()[1].startswith(("https://idm", "postgresql+psycopg://db.example.net:5432/app", "kafka:9092"))


def test_an_output_is_shown_by_its_name_and_with_what_it_took_under_a_former_one(tmp_path: Path) -> None:
    output = FilesOutput(path=str(tmp_path), name="hr-feed")
    former = {f"files {tmp_path}": OutputState(document="0007", position=(7,), at=1.0)}
    [shown] = with_standings(named_outputs(Config(output=(output,))), former, {})
    assert (shown.name, shown.noted, shown.standing.document) == ("hr-feed", "hr-feed", "0007")
    [now] = with_standings([shown], {**former, "hr-feed": OutputState(document="0008")}, {})
    assert now.standing.document == "0008"
