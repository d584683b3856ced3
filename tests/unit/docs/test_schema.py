"""The JSON schema of configurations: what the pages show fits it, what the reader refuses does not."""

from __future__ import annotations

import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from eventlog.init.first import SINKS, FirstAnswers, Sink, first_configuration
from tests.unit.config.test_settings import EVERYTHING, WRONG
from tests.unit.init.test_first import PLACES

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "eventlog" / "config" / "eventlog.schema.json").read_text())
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHOWN = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, text in enumerate(re.findall(r"^```toml[^\n]*\n(.+?)^```", page.read_text(), re.DOTALL | re.MULTILINE))
]
MEANINGS = tomllib.loads((ROOT / "docs" / "configuration.toml").read_text())


@cache
def validator() -> Any:
    """Every process of a run collects this file, and to load jsonschema takes it more than a second."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(SCHEMA)


def fits(settings: dict[str, Any]) -> bool:
    return bool(validator().is_valid(settings))


def test_the_schema_is_one() -> None:
    validator().check_schema(SCHEMA)
    assert len(SHOWN) > 25


@pytest.mark.parametrize("text", SHOWN)
def test_every_configuration_of_the_pages_fits(text: str) -> None:
    assert [error.message for error in validator().iter_errors(tomllib.loads(text))] == []


@pytest.mark.parametrize("settings, told", WRONG)
def test_what_the_reader_refuses_does_not_fit(settings: dict[str, Any], told: str) -> None:
    assert not fits(settings), told


@pytest.mark.parametrize("sink", SINKS)
def test_a_first_configuration_fits_and_names_the_schema(sink: Sink) -> None:
    text = first_configuration(FirstAnswers(url="sqlite:///app.db", sink=sink, place=PLACES[sink])).text
    assert text.startswith("#:schema ./eventlog.schema.json\n")
    assert fits(tomllib.loads(text))
    assert fits(tomllib.loads(EVERYTHING))


@pytest.mark.parametrize(
    "settings",
    [
        {"publisher": {"coalesce": "yes", "time_of_day": "02:00,14:30", "batch_size": "${SIZE}"}},
        {"source": {"columns": "a,b", "tables": "usr, grp", "lock_timeout": 1}},
        {"output": [{"sink": "kafka", "servers": "a", "options": {"x": 1}}]},
    ],
)
def test_what_the_reader_takes_besides_fits(settings: dict[str, Any]) -> None:
    assert fits(settings)


def test_a_number_out_of_its_bounds_does_not_fit() -> None:
    keys = [
        (section, key, ends) for section in ("publisher", "source") for key, ends in MEANINGS[section]["bounds"].items()
    ]
    assert len(keys) > 10
    for section, key, (low, high) in keys:
        for end, beyond in ((low, -1), (high, 1)):
            if not isinstance(end, str):
                assert fits({section: {key: end}})
                assert not fits({section: {key: end + beyond}}), key


def test_every_key_has_a_description() -> None:
    for name, definition in SCHEMA["$defs"].items():
        for key, known in definition["properties"].items():
            assert name == "Config" or known.get("description"), f"{name}.{key}"
