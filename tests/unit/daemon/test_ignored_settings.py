"""Settings that somebody has made and that do nothing: the publisher says so when it begins."""

from __future__ import annotations

from eventlog.config.outputs import FilesOutput, HttpOutput, OutputConfig
from eventlog.config.settings import Config, PublisherConfig
from eventlog.daemon.publisher import ignored_settings
from eventlog.qlik.messages.settings import MessageSettings


def test_a_topic_for_metadata_that_nobody_writes_is_told() -> None:
    outputs: list[OutputConfig] = [
        FilesOutput(name="plain", path="a", format="messages", messages=MessageSettings(metadata_topic="shapes")),
        FilesOutput(
            name="told", path="b", format="messages", messages=MessageSettings(metadata_topic="shapes", mode="metadata")
        ),
        FilesOutput(name="silent", path="c", format="messages"),
        HttpOutput(name="http", url="http://localhost/"),
    ]
    [(setting, why)] = ignored_settings(Config(output=tuple(outputs)))
    assert setting == "output.messages.metadata_topic"
    assert why.startswith("plain ")


def test_who_asks_for_workers_is_told_that_there_are_none() -> None:
    found = dict(ignored_settings(Config(publisher=PublisherConfig(workers=3))))
    assert [*found] == ["publisher.workers"]
