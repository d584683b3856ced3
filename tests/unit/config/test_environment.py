"""Settings as people write them: words for truth, texts for lists, and an environment that knows what a key takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eventlog.config.settings import Config, from_settings, load
from eventlog.core.errors import ConfigError
from eventlog.sinks.outputs import FilesOutput

HEAD = "EVENTLOG_"


def given(**environment: str) -> Config:
    return load(None, {HEAD + name: text for name, text in environment.items()})


def written(section: str, **keys: Any) -> Config:
    return from_settings({section: keys}, {}, origin="my.toml")


@pytest.mark.parametrize("word, value", [("yes", True), (" YES", True), ("no", False), ("true", True), ("0", False)])
def test_truth_may_be_a_word_in_a_file_too(word: str, value: bool) -> None:
    assert written("publisher", allow_loopback=word).publisher.allow_loopback is value


def test_what_is_no_word_for_truth_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"publisher\.allow_loopback takes true or false"):
        written("publisher", allow_loopback="maybe")


@pytest.mark.parametrize("text", ["02:00,14:30:15", " 02:00 , 14:30:15, "])
def test_a_list_may_be_a_text_with_commas(text: str) -> None:
    assert written("publisher", time_of_day=text).publisher.time_of_day == ("02:00", "14:30:15")


def test_statements_are_told_apart_by_semicolons() -> None:
    config = written("publisher", post_poll_statements="CALL move(1, 2); DELETE FROM done;")
    assert config.publisher.post_poll_statements == ("CALL move(1, 2)", "DELETE FROM done")


def test_a_choice_is_no_list() -> None:
    assert written("source", columns="old").source.columns == "old"
    assert written("source", columns="id,st").source.columns == ("id", "st")
    with pytest.raises(ConfigError, match=r"source\.columns takes auto, new, new by bytes, "):
        written("source", columns="older")


@pytest.mark.parametrize("text", ["123456", "true", "02:00:00", "[abc]", "{a = 1}", "1.50", "2024-05-06"])
def test_what_a_key_takes_as_text_is_text_whatever_it_looks_like(text: str) -> None:
    config = given(OUTPUT__SINK="files", OUTPUT__PATH=text, SOURCE__USER=text)
    (output,) = config.output
    assert isinstance(output, FilesOutput)
    assert (output.path, config.source.user) == (text, text)


def test_nothing_is_an_empty_list() -> None:
    assert given(PUBLISHER__TIME_OF_DAY="", SOURCE__TABLES="usr,grp").publisher.time_of_day == ()
    assert given(SOURCE__TABLES="usr, grp").source.tables == ("usr", "grp")


@pytest.mark.parametrize("text", ["[usr", " [usr]", '["usr"', "['usr', 'grp'],"])
def test_a_torn_list_is_named_and_no_table_is_called_by_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"EVENTLOG_SOURCE__TABLES begins with \[ and is no list of TOML"):
        given(SOURCE__TABLES=text)
    assert given(SOURCE__TABLES='["usr", "[grp"]').source.tables == ("usr", "[grp")


def test_keys_of_a_key_have_names_too() -> None:
    config = given(SOURCE__LINTER__CODE_PAGE="cp1251", SOURCE__GBASE='{tables = {"111" = "shop.t1"}}')
    assert config.source.table("linter").code_page == "cp1251"
    assert config.source.table("gbase").tables == {"111": "shop.t1"}
    config = given(OUTPUT__SINK="stdout", OUTPUT__FORMAT="messages", OUTPUT__MESSAGES__MODE="envelope")
    assert config.output[0].messages.mode == "envelope"  # type: ignore[attr-defined]  # its sink is standard output


def test_the_environment_goes_over_what_the_file_has_there(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text("[source.linter]\ncode_page = 'koi8-r'\ncoding = 'auto'\n", encoding="utf-8")
    linter = load(file, {"EVENTLOG_SOURCE__LINTER__CODE_PAGE": "cp866"}).source.table("linter")
    assert (linter.code_page, linter.coding) == ("cp866", "auto")


@pytest.mark.parametrize("name", ["SOURCE__LINTER__PAGE", "SOURCE__USER__NAME", "SOURCE__NOTHING__THERE"])
def test_a_key_that_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="source"):
        given(**{name: "x"})


def test_a_group_that_the_file_has_wrong_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text("[source]\nlinter = 5\n", encoding="utf-8")
    assert load(file, {"EVENTLOG_SOURCE__LINTER__CODE_PAGE": "cp866"}).source.table("linter").code_page == "cp866"


def test_a_mark_of_the_byte_order_is_no_part_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_bytes(b"\xef\xbb\xbf[source]\r\nuser = 'idm'\r\n")
    assert load(file, {}).source.user == "idm"


def test_a_quoted_text_is_written_as_in_toml() -> None:
    assert given(SOURCE__USER='"idm"').source.user == "idm"
