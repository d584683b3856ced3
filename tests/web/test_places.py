"""Outputs as the page names them: as their notes do, and without what is secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.config import Config
from eventlog.destinations import outputs_of
from eventlog.outputs import DatabaseOutput, FilesOutput, HttpOutput, KafkaOutput, OutputConfig, StdoutOutput
from eventlog.web.places import named_outputs


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
    finally:
        for output in made:
            output.sink.close()
    assert names() == ["stdout"]


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
