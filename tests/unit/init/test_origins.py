"""Where the values of a configuration come from, to the line, and that no secret is shown with them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.config.settings import load
from eventlog.core.secrets import SettingPath
from eventlog.init.origins import ConfigSetting, lines_of, settings_in_force, what_was_written
from tests.support.shares import met, shares

FILE = """\
# A comment, and a blank line

[source]
url = "postgresql://idm:${PW}@db/app"
tables = [
    "usr", # one
    "grp",
]

[publisher]
post_poll_statements = ["CALL a('${PW}')", "CALL b()"]
coalesce = "yes"
retry_first = 2

[[output]]
sink = "kafka"
servers = "a:9092"
sasl = "plain"
user = "me"
password = "hunter2"
options = { "ssl.key.password" = "hunter2", "x.y" = 1 }

[output.messages]
encoding = "avro"

[[output]]
sink = "http"
url = "https://example.net/?token=hunter2"
authorization = "Bearer ${PW}"
policies = ["one"]

[[output]]
sink = "database"
url = "postgresql://me:${PW}@db/app?sslpassword=hunter2"

[[policy]]
name = "one"
[[policy.steps]]
do = "hash"
attributes = ["mail"]
secret = "hunter2hunter2hunter2"
[[policy.steps]]
do = "without"
classes = ["usr"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "eventlog.toml").write_text(FILE)
    return tmp_path / "eventlog.toml"


def shown(
    file: Path | None,
    environment: dict[str, str] | None = None,
    options: dict[SettingPath, tuple[str, str]] | None = None,
    *,
    everything: bool = False,
) -> dict[str, ConfigSetting]:
    known = {"PW": "p@ssword", **(environment or {})}
    config = load(file, known)
    written = what_was_written(file, known, options or {})
    return {one.key: one for one in settings_in_force(config, written, everything=everything)}


def test_every_value_has_its_line(file: Path) -> None:
    found = shown(file)
    lines = {key: (one.where or "").rpartition(":")[2] for key, one in found.items() if one.origin == "file"}
    expected = {
        "source.tables": "5",
        "publisher.coalesce": "12",
        "output[0].options.x.y": "21",
        "output[0].messages.encoding": "24",
        "output[1].policies": "30",
        "output[2].url": "34",
        "policy[0].name": "37",
        "policy[0].steps[0].secret": "41",
        "policy[0].steps[1].classes": "44",
    }
    assert expected.items() <= lines.items()
    assert len(lines) == 25
    assert found["source.kind"] == ConfigSetting(key="source.kind", value="log", origin="default", where=None)


def test_no_secret_is_shown_and_the_names_of_secrets_are(file: Path) -> None:
    found = shown(file, everything=True)
    text = msgspec.json.encode([*found.values()]).decode()
    assert "hunter2" not in text
    assert "p@ssword" not in text
    assert "p%40ssword" not in text
    assert found["source.url"].value == "postgresql://idm:${PW}@db/app"
    assert found["publisher.post_poll_statements"].value == ["CALL a('${PW}')", "CALL b()"]
    assert found["output[0].password"].value == "***"
    assert found["output[1].url"].value == "https://example.net/?token=***"
    assert found["output[1].authorization"].value == "Bearer ${PW}"
    assert "hunter2" not in str(found["output[2].url"].value)
    assert found["policy[0].steps[0].secret"].value == "***"


def test_a_secret_with_a_part_as_it_is_is_not_shown() -> None:
    environment = {"EVENTLOG_WEB__TOKEN": "in-the-open-${PW}-and-more", "PW": "x" * 16}
    found = shown(None, environment)
    assert (found["web.token"].value, found["web.token"].where) == ("***", "EVENTLOG_WEB__TOKEN")


def test_options_win_over_the_environment_and_that_over_the_file(file: Path) -> None:
    environment = {
        "EVENTLOG_SOURCE__LOG": "of.environment",
        "EVENTLOG_PUBLISHER__RETRY_FIRST": "3",
        "EVENTLOG_OUTPUT__MESSAGES__TOPIC": "t",
        "EVENTLOG_OUTPUT__OPTIONS": '{ "x.y" = 5 }',
    }
    options: dict[SettingPath, tuple[str, str]] = {
        ("source", "url"): ("--database", "x"),
        ("source", "log"): ("EVENTLOG_X", "y"),
    }
    found = shown(file, environment, options)
    assert (found["source.url"].origin, found["source.url"].where) == ("option", "--database")
    assert (found["source.log"].origin, found["source.log"].where) == ("environment", "EVENTLOG_X")
    assert found["publisher.retry_first"].where == "EVENTLOG_PUBLISHER__RETRY_FIRST"
    assert found["output[0].messages.topic"].where == "EVENTLOG_OUTPUT__MESSAGES__TOPIC"
    assert found["output[0].options.x.y"].where == "EVENTLOG_OUTPUT__OPTIONS"


KEYS = st.text("ab", min_size=1, max_size=2)
VALUES = (
    st.integers(0, 9)
    | st.booleans()
    | st.sampled_from(["x", "a\nb", '"""', "[x]", "# no"])
    | st.lists(st.integers(0, 9))
)


@shares(keys=0.3, several=0.2)
@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3), st.booleans())
def test_the_pieces_of_a_file_say_what_the_file_says(tables: dict[str, dict[str, Any]], several: bool) -> None:
    def written(value: Any) -> str:
        if isinstance(value, list):
            return "[\n" + "".join(f"  {one},\n" for one in value) + "]"
        return f"'''{value}'''" if isinstance(value, str) else str(value).lower()

    heads = ["[[{}]]" if several else "[{}]"] * len(tables)
    text = "\n".join(
        head.format(name) + "\n\n# c\n" + "".join(f"{key} = {written(value)}\n" for key, value in table.items())
        for head, (name, table) in zip(heads, tables.items(), strict=True)
    )
    found = lines_of(text)
    whole = tomllib.loads(text)
    met(keys=found, several=several and found)
    assert len(found) == sum(len(table) for table in tables.values())
    for (name, *rest), (value, line) in found.items():
        table = whole[str(name)][0] if several else whole[str(name)]
        assert table[str(rest[-1])] == value
        assert text.split("\n")[line - 1].startswith(f"{rest[-1]} =")
