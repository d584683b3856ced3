"""The publisher's keys: what each takes, what is refused, and what outputs are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config, PublisherConfig, from_settings
from eventlog.core.errors import ConfigError
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.outputs import FilesOutput, StdoutOutput


def read(**keys: Any) -> PublisherConfig:
    return from_settings({"publisher": keys}, {}, origin="test").publisher


def test_the_defaults_are_the_documented_ones() -> None:
    found = read()
    assert (found.polling_interval, found.time_of_day, found.query_limit) == (10, (), 10_000)
    assert (found.on_retry, found.on_error, found.max_attempts) == ("stop", "continue", 0)
    assert (found.heartbeat_interval, found.post_poll_statements, found.wake_up) == (0, (), True)


@pytest.mark.parametrize(
    "key, value",
    [
        ("polling_interval", 0),
        ("polling_interval", 604_801),
        ("heartbeat_interval", -0.5),
        ("max_attempts", -1),
        ("retry_first", -0.1),
        ("retry_longest", 0.5),
        ("lease", 0.1),
    ],
)
def test_numbers_outside_their_range_are_refused_by_name(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"publisher.{key} is {value}; it must be between"):
        read(**{key: value})


@pytest.mark.parametrize(
    "keys, words",
    [
        ({"on_retry": "wait"}, "publisher.on_retry takes object, stop"),
        ({"on_error": "stop"}, "publisher.on_error takes continue, halt"),
        ({"time_of_day": ["noon"]}, "'noon' is not a time of day"),
        ({"on_fatal": "stop"}, "publisher.on_fatal is not a key"),
    ],
)
def test_what_is_not_supported_is_refused_and_not_ignored(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read(**keys)


@pytest.mark.parametrize("name", ["statement_timeout", "lock_timeout"])
def test_no_timeout_can_be_switched_off(name: str) -> None:
    with pytest.raises(ConfigError, match=f"source.{name} is 0"):
        from_settings({"source": {name: 0}}, {}, origin="test")


def test_an_output_is_called_after_its_place_and_never_after_a_secret(tmp_path: Path) -> None:
    url = "https://receiver.example/xds?key=hidden"
    found = outputs_of(Config(output=(FilesOutput(path=str(tmp_path / "a")), HttpOutput(url=url), StdoutOutput())))
    assert [output.name for output in found] == [
        f"files {tmp_path / 'a'}",
        "http https://receiver.example/xds",
        "stdout",
    ]
    assert [output.answers for output in found] == [False, True, False]
    for output in found:
        output.sink.close()


def test_a_long_place_has_a_short_name_that_is_still_its_own(tmp_path: Path) -> None:
    places = [tmp_path / ("x" * 200) / end for end in "ab"]
    names = [outputs_of(Config(output=(FilesOutput(path=str(place)),)))[0].name for place in places]
    assert len({*names}) == 2
    assert all(len(name) <= 170 for name in names)


def named(name: str, path: Path, **keys: Any) -> dict[str, Any]:
    return {"sink": "files", "path": str(path), "name": name, **keys}


def test_a_name_stays_when_the_folder_moves_and_notes_of_before_are_found(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        output = named("hr-feed", tmp_path / folder, former_names=["people"])
        [made] = outputs_of(from_settings({"output": [output]}, {}, origin="test"))
        assert made.name == "hr-feed"
        assert made.former_names == ("people", f"files {tmp_path / folder}")


@pytest.mark.parametrize(
    "twins, said",
    [
        ([("hr", "a"), ("hr", "b")], "Two outputs are called hr"),
        ([("hr", "a"), ("it", "a")], "Two outputs go to files"),
        ([("", "a"), ("", "a")], "Two outputs go to files"),
    ],
)
def test_two_outputs_have_neither_one_name_nor_one_place(
    twins: list[tuple[str, str]], said: str, tmp_path: Path
) -> None:
    settings = {"output": [named(name, tmp_path / place) for name, place in twins]}
    with pytest.raises(ConfigError, match=said):
        outputs_of(from_settings(settings, {}, origin="test"))


@pytest.mark.parametrize("name", ["-", " hr", "hr ", "hr/feed", "a\nb", "x" * 101, "p=w", "decided"])
def test_what_is_no_name_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"output\[0\].name is"):
        from_settings({"output": [named(name, tmp_path)]}, {}, origin="test")
