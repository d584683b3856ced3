"""How the settings of an output make its format."""

from __future__ import annotations

from pathlib import Path

from eventlog.config.build import outputs_of
from eventlog.config.settings import from_settings
from eventlog.core.seams import FormerNames
from eventlog.policies.bound import PolicyFormat
from eventlog.policies.steps import Rename
from eventlog.qlik.messages.plugin import MESSAGES
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat


def test_messages_are_counted_and_know_no_former_names_behind_steps(tmp_path: Path) -> None:
    output = {"format": "messages", "sink": "files", "path": str(tmp_path), "messages": {"topic": "all"}}
    (made,) = outputs_of(from_settings({"output": [output]}, {}, origin="the test"))
    assert isinstance(made.format, MessageFormat)
    behind = PolicyFormat(made.format, (Rename(class_name="person"),))
    assert behind.counts
    assert behind.former_names is FormerNames.ONLY_NEW


def test_a_topic_of_metadata_that_nobody_writes_to_is_pointed_out() -> None:
    assert MESSAGES.ignored is not None
    assert [name for name, _ in MESSAGES.ignored(MessageSettings(metadata_topic="meta"))] == ["metadata_topic"]
    assert not [*MESSAGES.ignored(MessageSettings(mode="metadata", metadata_topic="meta"))]
