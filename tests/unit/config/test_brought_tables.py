"""A table of the configuration that another package brings is read, checked, shown and completed as ours are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eventlog.config.settings import Config, from_settings, load
from eventlog.config.weak_secrets import find_secrets
from eventlog.core.errors import ConfigError
from eventlog.init.editors import schema_text
from eventlog.init.origins import settings_in_force, what_was_written
from tests.support.plugins import Site, site

__all__ = ["site"]

TIDE = """
    from eventlog.plugins import ConfigError, SecretSettings, TablePlugin


    class Tide(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
        place: str = "here"
        height: float = 0
        token: str = ""


    def dry(config):
        if not config.output:
            raise ConfigError("tide.place needs an output.")


    TABLE = TablePlugin(settings=Tide, check=dry)
"""
OUTPUT = [{"sink": "stdout"}]


@pytest.fixture(autouse=True)
def _installed(site: Site) -> None:
    points = {"tide": "eventlog_tide:TABLE", "publisher": "eventlog_tide:TABLE", "high-tide": "eventlog_tide:TABLE"}
    site.install("eventlog-tide", {"tables": points}, TIDE)


def read(**sections: Any) -> Config:
    return from_settings(sections, {"SECRET": "s3cret-words"}, origin="x.toml")


def test_it_is_there_whether_somebody_wrote_it_or_not() -> None:
    assert read(output=OUTPUT).table("tide").place == "here"
    assert read(output=OUTPUT, tide={"height": 2}).table("tide").height == 2
    with pytest.raises(ConfigError, match=r"There is no table of the configuration tidal. Did you mean tide?"):
        read().table("tidal")


def test_variables_and_secrets_work_in_it(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text('[[output]]\nsink = "stdout"\n[tide]\nheight = 1\ntoken = "${SECRET}"\n')
    environment = {"EVENTLOG_TIDE__HEIGHT": "3.5", "SECRET": "s3cret-words"}
    config = load(file, environment)
    assert (config.table("tide").height, config.table("tide").token) == (3.5, "s3cret-words")
    assert find_secrets(config).words == ("s3cret-words",)
    written = what_was_written(file, environment, {})
    shown = {one.key: (one.value, one.origin, one.where) for one in settings_in_force(config, written)}
    assert shown["tide.height"] == (3.5, "environment", "EVENTLOG_TIDE__HEIGHT")
    assert shown["tide.token"] == ("${SECRET}", "file", f"{file}:5")
    assert shown["tide.place"] == ("here", "default", None)
    assert load(None, environment | {"EVENTLOG_OUTPUT__SINK": "stdout"}).table("tide").height == 3.5


def test_what_it_does_not_hold_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"x.toml: tide.hight is not a key. Did you mean height?"):
        read(tide={"hight": 2})
    with pytest.raises(ConfigError, match=r"tide.height takes a number, not a text"):
        read(output=OUTPUT, tide={"height": "high"})
    with pytest.raises(ConfigError, match=r"\[tied\] is not a section. Did you mean tide?"):
        read(tied={})
    with pytest.raises(ConfigError, match="tide is written as"):
        read(tide=[{}])
    with pytest.raises(ConfigError, match=r"tide.place needs an output"):
        read(tide={})


def test_editors_complete_it() -> None:
    schema = json.loads(schema_text())
    assert schema["$defs"]["Config"]["properties"]["tide"]["$ref"] == "#/$defs/Tide"
    assert {"place", "height", "token"} == schema["$defs"]["Tide"]["properties"].keys()
    assert schema["$defs"]["Config"]["properties"]["web"] == {"$ref": "#/$defs/WebConfig"}
