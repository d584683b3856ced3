"""The configuration: what is read, what is refused and in which words, and that secrets stay secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.config.settings import Config, PublisherConfig, SourceConfig, from_settings, load
from eventlog.core.errors import ConfigError
from eventlog.sinks.outputs import FilesOutput, StdoutOutput

EVERYTHING = """
[source]
kind = "log"
url = "postgresql+psycopg://idm@db/app"
log = "indirect.event_log"
columns = "old"
user = "idm"

[publisher]
polling_interval = 60
batch_size = 128
query_limit = 0
allow_loopback = true
handle_future_events = true
delete_from_log = true
coalesce = true
time_syntax = 3
enable_refs = false

[[output]]
format = "xds"
sink = "files"
path = "out/"

[[output]]
sink = "stdout"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "eventlog.toml"


def read(file: Path, text: str, environment: dict[str, str] | None = None) -> Config:
    file.write_text(text, encoding="utf-8")
    return load(file, environment or {})


def refused(settings: dict[str, Any], environment: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigError) as caught:
        from_settings(settings, environment or {}, origin="my.toml")
    return str(caught.value)


def test_every_key_is_read(file: Path) -> None:
    config = read(file, EVERYTHING)
    assert config.source == SourceConfig(
        url="postgresql+psycopg://idm@db/app", log="indirect.event_log", columns="old", user="idm"
    )
    assert config.publisher == PublisherConfig(
        polling_interval=60,
        batch_size=128,
        query_limit=0,
        allow_loopback=True,
        handle_future_events=True,
        delete_from_log=True,
        coalesce=True,
        time_syntax=3,
        enable_refs=False,
    )
    assert config.output == (FilesOutput(path="out/"), StdoutOutput())


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"sorce": {}}, "my.toml: [sorce] is not a section. Did you mean source?"),
    (
        {"x": 1},
        "my.toml: [x] is not a section. There are lineage, output, policy, publisher, query, source, verify, web.",
    ),
    ({"publisher": {"batchsize": 1}}, "my.toml: publisher.batchsize is not a key. Did you mean batch_size?"),
    ({"output": [{"sink": "files", "pth": "x"}]}, "my.toml: output.pth is not a key. Did you mean path?"),
    ({"source": 5}, "my.toml: source is written as [source]."),
    ({"output": {"sink": "stdout"}}, "my.toml: output is written as [[output]]."),
    ({"output": []}, "my.toml: output is written as [[output]]."),
    ({"output": ["stdout"]}, "my.toml: output is written as [[output]]."),
    ({"output": [5]}, "my.toml: output is written as [[output]]."),
    (
        {"output": [{}]},
        "my.toml: output[0] needs the key `sink`: database, delta, files, http, iceberg, kafka, scim, stdout, webhook.",
    ),
    (
        {"output": [{"sink": "files", "path": "out", "row_files": {"heder": 1}}]},
        "my.toml: output.row_files.heder is not a key. Did you mean header?",
    ),
    ({"output": [{"sink": "files"}]}, "my.toml: output[0] needs the key `path`."),
    (
        {"source": {"columns": "newest"}},
        (
            "my.toml: source.columns takes auto, new, new by bytes, new by letters, old, old by bytes, old by letters."
            " Did you mean new?"
        ),
    ),
    ({"source": {"log": 5}}, "my.toml: source.log takes a text, not a whole number."),
    (
        {"publisher": {"batch_size": "five"}},
        "my.toml: publisher.batch_size takes a whole number, not a text.",
    ),
    (
        {"publisher": {"batch_size": 1.5}},
        "my.toml: publisher.batch_size takes a whole number, not a number with a point.",
    ),
    ({"publisher": {"coalesce": "maybe"}}, "my.toml: publisher.coalesce takes true or false, not a text."),
    ({"publisher": {"time_syntax": 4}}, "my.toml: publisher.time_syntax takes 1, 2, 3."),
]
"""Settings that are refused, and what is told."""


@pytest.mark.parametrize("settings, told", WRONG)
def test_what_cannot_be_used_is_named_with_the_way_out(settings: dict[str, Any], told: str) -> None:
    assert refused(settings) == told


@pytest.mark.parametrize(
    "settings, told, choices",
    [
        ({"source": {"nothing": "files"}}, "my.toml: source.nothing is not a key. There are ", ["kind", "url"]),
        ({"source": {"kind": "lgo"}}, "my.toml: source.kind takes ", ["log"]),
        ({"output": [{"sink": "stdout"}, {"sink": "fles"}]}, "my.toml: output[1].sink takes ", ["files", "stdout"]),
        ({"output": [{"sink": "stdout", "format": "sdx"}]}, "my.toml: output[0].format takes ", ["xds"]),
        (
            {
                "output": [
                    {"sink": "scim", "url": "http://x", "scim": {"tables": {"usr": {"columns": {}, "delete": "no"}}}}
                ]
            },
            "my.toml: output[0].scim.tables[...].delete takes ",
            ["delete", "disable"],
        ),
    ],
)
def test_what_is_not_a_choice_is_answered_with_the_choices(
    settings: dict[str, Any], told: str, choices: list[str]
) -> None:
    message = refused(settings)
    assert message.startswith(told)
    listed, _, _ = message.removeprefix(told).partition(".")
    assert set(choices) <= set(listed.split(", "))


@pytest.mark.parametrize(
    "key, low, high", [("polling_interval", 1, 604_800), ("batch_size", 1, 128), ("query_limit", 0, 2_147_483_647)]
)
def test_numbers_have_their_documented_ranges(key: str, low: int, high: int) -> None:
    for value in (low, high):
        config = from_settings({"publisher": {key: value}}, {}, origin="my.toml")
        assert getattr(config.publisher, key) == value
    for value in (low - 1, high + 1):
        told = refused({"publisher": {key: value}})
        assert told == f"publisher.{key} is {value}; it must be between {low} and {high}."


def test_a_file_that_is_not_toml_is_named_with_the_place(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"eventlog\.toml is not TOML: .*line 2"):
        read(file, "[source]\nurl = here\n")


def test_a_file_that_does_not_exist_is_named(file: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^The configuration file .*eventlog\.toml does not exist\. --config FILE names another\.$"
    ):
        load(file, {})


def test_a_folder_or_other_bytes_cannot_be_read(file: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(file.parent, {})
    file.write_bytes(b"[source]\nuser = '\xff'\n")
    with pytest.raises(ConfigError, match=r"is not UTF-8 in line 2"):
        load(file, {})


def test_the_environment_wins_over_the_file(file: Path) -> None:
    environment = {
        "EVENTLOG_SOURCE__URL": "sqlite:///other.db",
        "EVENTLOG_PUBLISHER__BATCH_SIZE": "7",
        "EVENTLOG_OUTPUT__PATH": "elsewhere/",
        "eventlog_source__user": "nobody",
        "EVENTLOG_GOLDEN": "write",
        "EVENTLOG_SOURCE__": "nothing",
        "SOURCE__USER": "nobody",
    }
    config = read(file, EVERYTHING, environment)
    assert (config.source.url, config.source.user) == ("sqlite:///other.db", "idm")
    assert (config.publisher.batch_size, config.publisher.polling_interval) == (7, 60)
    assert config.output == (FilesOutput(path="elsewhere/"), StdoutOutput())


@pytest.mark.parametrize(
    "variable, value, said",
    [
        ("EVENTLOG_PUBLISHER__BATCH_SIZ", "7", "publisher.batch_siz is not a key. Did you mean batch_size?"),
        ("EVENTLOG_OUTPUT__PAHT", "out", "output.paht is not a key. Did you mean path?"),
        ("EVENTLOG_OUTPUT__CHANGE_TABLES__TASC", "x", "output.change_tables.tasc is not a key."),
        ("EVENTLOG_PUBLISHER__BATCH_SIZE", "few", "publisher.batch_size takes a whole number, not a text."),
        ("EVENTLOG_OUTPUT__MAX_BEHIND_ROWS", "few", "output[0].max_behind_rows takes a whole number, not a text."),
    ],
)
def test_a_variable_that_is_wrong_is_named_and_not_the_file(file: Path, variable: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(file, EVERYTHING, {variable: value})
    assert str(caught.value).startswith(f"{variable}: {said}")


def test_a_source_of_another_name_is_suggested() -> None:
    said = refused({"source": {"kind": "gbas", "gbas": {"timeout": 3}}})
    assert said == "my.toml: source.gbas is not a key. Did you mean gbase?"


def test_a_secret_comes_from_the_environment(file: Path) -> None:
    text = '[source]\nurl = "oracle://idm:${PW}@${HOST}/app"\ncolumns = ["${PW}"]'
    config = read(file, text, {"PW": "hunter2", "HOST": "db"})
    assert config.source.url == "oracle://idm:hunter2@db/app"
    assert config.source.columns == ("hunter2",)


def test_a_secret_comes_from_a_file(file: Path) -> None:
    secret = file.with_name("pw")
    secret.write_text(" hunter2 \r\n", encoding="utf-8")
    assert read(file, f'[source]\nurl = "db:${{file:{secret}}}"').source.url == "db: hunter2 "


@pytest.mark.parametrize(
    "url, read",
    [
        ("postgresql://idm:${PW}@db/app", "postgresql://idm:p%40s%2Fs%3A%25@db/app"),
        ("postgresql://${PW}@db/app", "postgresql://p%40s%2Fs:%25@db/app"),
        ("postgresql://db/app?user=idm&password=${PW}", "postgresql://db/app?user=idm&password=p%40s%2Fs%3A%25"),
        ("postgresql://idm:x${PW}y@[::1]:5432/${PW}", "postgresql://idm:xp%40s%2Fs%3A%25y@[::1]:5432/p@s/s:%"),
        ("${PW}", "p@s/s:%"),
        ("Bearer ${PW}", "Bearer p@s/s:%"),
        ("call(?, '${PW}')", "call(?, 'p@s/s:%')"),
    ],
)
def test_a_secret_in_a_url_is_quoted_where_its_signs_would_end_something(url: str, read: str) -> None:
    assert load(None, {"EVENTLOG_SOURCE__URL": url, "PW": "p@s/s:%"}).source.url == read


def test_a_secret_is_put_in_once() -> None:
    assert load(None, {"EVENTLOG_SOURCE__URL": "${PW}", "PW": "${HOME}"}).source.url == "${HOME}"


def test_a_secret_that_is_missing_is_named() -> None:
    told = refused({"source": {"url": "db:${PW}"}}, {"PASSWORD": "hunter2"})
    assert told == "The configuration names ${PW}, and the environment has no PW. Set it, or write ${file:PATH}."


def test_a_secret_file_that_cannot_be_read_is_named(file: Path) -> None:
    told = refused({"source": {"url": f"${{file:{file}}}"}})
    assert (
        told
        == f"The secret file {file} cannot be read: No such file or directory. It must be a text that this user may read."
    )
    file.write_bytes(b"hunter2\xff")
    told = refused({"source": {"url": f"${{file:{file}}}"}})
    assert (
        told
        == f"The secret file {file} cannot be read: it is no UTF-8 text. It must be a text that this user may read."
    )


@given(
    st.sampled_from(["source.kind", "source.columns", "publisher.coalesce", "publisher.batch_size"])
    | st.sampled_from(["publisher.time_syntax", "output.sink", "output.format"])
)
def test_a_secret_never_stands_in_a_message(place: str) -> None:
    section, _, key = place.partition(".")
    table = {"sink": "stdout"} | {key: "${PW}"} if section == "output" else {key: "${PW}"}
    settings = {section: [table] if section == "output" else table}
    told = refused(settings, {"PW": "hunter2"})
    assert key in told
    assert "hunter2" not in told


SECRET = "hunter2"


@pytest.mark.parametrize(
    "written",
    [
        '[source]\nurl = "postgresql://idm:${PW}@db/app"',
        "[publisher]\npost_poll_statements = [\"CALL tidy('${PW}')\"]",
        '[[output]]\nsink = "http"\nurl = "https://example.org/"\nauthorization = "Bearer ${PW}"',
    ],
)
def test_what_is_printed_of_a_configuration_holds_no_secret(tmp_path: Path, written: str) -> None:
    """A traceback, a log line or a debugger shows that a text is set, and never which."""
    file = tmp_path / "eventlog.toml"
    file.write_text(written)
    config = load(file, {"PW": SECRET})
    assert SECRET in str(msgspec.to_builtins(config)), "the secret has come in"
    assert SECRET not in repr(config)
    assert SECRET not in f"{config} {config.source} {config.publisher} {list(config.output)}"


def test_what_is_no_text_is_printed(tmp_path: Path) -> None:
    """Numbers and truth values help whoever looks for a mistake."""
    file = tmp_path / "eventlog.toml"
    file.write_text("[publisher]\nbatch_size = 7\ncoalesce = true\n")
    assert repr(load(file, {}).publisher) == "PublisherConfig(batch_size=7, coalesce=True)"
