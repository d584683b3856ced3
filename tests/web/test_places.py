"""Outputs as the page names them: as their notes do, and without what is secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.config.build import NAME_CHARACTERS, outputs_of
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.delivery.output import OutputState
from eventlog.explain.states import OutputPlace
from eventlog.sinks.database.plugin import DatabaseOutput
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.kafka.plugin import KafkaOutput
from eventlog.sinks.outputs import FilesOutput, StdoutOutput
from eventlog.web.collector import name_outputs, with_output_states
from eventlog.web.reading import OutputView


def names(*outputs: OutputConfig) -> list[str]:
    return [place.name for place in name_outputs(Config(output=outputs))]


def test_names_are_those_of_the_notes(tmp_path: Path) -> None:
    outputs = (
        FilesOutput(path=str(tmp_path / "out")),
        HttpOutput(url="https://idm.example.net:8443/xds?key=hidden#part"),
        StdoutOutput(),
    )
    made = outputs_of(Config(output=outputs))
    try:
        assert names(*outputs) == [output.name for output in made]
        assert [place.noted for place in name_outputs(Config(output=outputs))] == [output.name for output in made]
    finally:
        for output in made:
            output.sink.close()
    assert names() == ["stdout"]


def test_a_long_name_is_that_of_its_notes(tmp_path: Path) -> None:
    output = FilesOutput(path=str(tmp_path / ("long" * 50)))
    [place], [made] = name_outputs(Config(output=(output,))), outputs_of(Config(output=(output,)))
    made.sink.close()
    assert len(place.noted) <= NAME_CHARACTERS < len(place.name)
    assert place.noted == made.name


def test_the_journal_says_what_is_on_the_way_to_an_output_also_under_its_former_name() -> None:
    views = [OutputView(name=name, noted=name, format="xds", former_names=("was",)) for name in ("new", "kept")]
    places = {
        name: OutputPlace(name=name, position=1, plan="p", ahead=0, on_the_way=rows, paused=paused)
        for name, rows, paused in (("was", 3, None), ("kept", 2, "since noon"))
    }
    found = with_output_states(views, {}, places)
    assert [(one.on_the_way, one.paused) for one in found] == [(3, None), (2, "since noon")]


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
    [shown] = with_output_states(name_outputs(Config(output=(output,))), former, {})
    assert (shown.name, shown.noted, shown.state.document) == ("hr-feed", "hr-feed", "0007")
    [now] = with_output_states([shown], {**former, "hr-feed": OutputState(document="0008")}, {})
    assert now.state.document == "0008"
