"""Settings that somebody has made and that do nothing: the publisher says so when it begins."""

from __future__ import annotations

from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.daemon.publisher import list_ignored_settings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.outputs import FilesOutput


def test_a_topic_for_metadata_that_nobody_writes_is_told() -> None:
    outputs: list[OutputConfig] = [
        FilesOutput(name="plain", path="a", format="messages", messages=MessageSettings(metadata_topic="shapes")),
        FilesOutput(
            name="told", path="b", format="messages", messages=MessageSettings(metadata_topic="shapes", mode="metadata")
        ),
        FilesOutput(name="silent", path="c", format="messages"),
        HttpOutput(name="http", url="http://localhost/"),
    ]
    [(setting, why)] = list_ignored_settings(Config(output=tuple(outputs)))
    assert setting == "output.messages.metadata_topic"
    assert why.startswith("plain ")
