"""The settings of the HTTP output: what is refused, in which words, and that no secret gets into them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config, from_settings
from eventlog.core.errors import ConfigError
from eventlog.sinks.http.address import HttpSettings, trust
from eventlog.sinks.http.sink import HttpSink
from eventlog.sinks.outputs import HttpOutput

URL = "https://idm.example/xds"


def configured(environment: dict[str, str] | None = None, **keys: Any) -> Config:
    return from_settings({"output": [{"sink": "http", **keys}]}, environment or {}, origin="my.toml")


def refused(**keys: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        configured(**{"url": URL, **keys})
    return str(caught.value)


def test_what_sending_needs_is_loaded_before_threads_send() -> None:
    """The modules of urllib3 import each other: two threads that are the first to ask for them may get halves."""
    program = (
        "import sys; from eventlog.sinks.http.address import HttpSettings; from eventlog.sinks.http.sink import HttpSink;"
        " assert 'urllib3.connection' not in sys.modules; HttpSink(HttpSettings(url='http://127.0.0.1:9/'));"
        " assert {'urllib3.connection', 'urllib3.exceptions', 'eventlog.xds.read'} <= {*sys.modules}"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_an_output_is_read_with_its_defaults_and_its_secret() -> None:
    (output,) = configured({"TOKEN": "s3cret"}, url=URL, authorization="Bearer ${TOKEN}", total_timeout=5).output
    assert isinstance(output, HttpOutput)
    assert (output.authorization, output.total_timeout, output.verify) == ("Bearer s3cret", 5.0, True)
    assert (output.connect_timeout, output.read_timeout, output.reply_limit) == (10.0, 60.0, 1_048_576)


def test_an_output_becomes_a_sink() -> None:
    (output,) = outputs_of(configured(url=URL))
    assert isinstance(output.sink, HttpSink)
    assert output.sink.last() == ""


@pytest.mark.parametrize(
    "url",
    ["", "idm.example", "ftp://idm.example/", "http://", "http://a:99999/", "http://a b/", "http://ä/", "http://[x/"],
)
def test_an_address_that_takes_no_documents_is_refused(url: str) -> None:
    assert "output.url is no address" in refused(url=url)


def test_credentials_in_the_address_are_refused_and_not_repeated() -> None:
    said = refused(url="https://idm:s3cret@idm.example/")
    assert "Write them as `authorization`" in said
    assert "s3cret" not in said


@pytest.mark.parametrize("value", ["Bearer s3cret\r\nX: y", "Bearer s3crét", " "])
def test_a_header_that_cannot_be_sent_is_refused_and_not_repeated(value: str) -> None:
    said = refused(authorization=value)
    assert "output.authorization" in said
    assert "s3c" not in said


@pytest.mark.parametrize("name", ["connect_timeout", "read_timeout", "total_timeout", "reply_limit"])
def test_limits_are_more_than_nothing(name: str) -> None:
    assert f"output.{name} is 0" in refused(**{name: 0})


@pytest.mark.parametrize("number", [0, 65, -1])
def test_there_are_as_many_connections_as_a_receiver_can_bear(number: int) -> None:
    assert f"output.connections is {number}; it must be between 1 and 64" in refused(connections=number)
    (output,) = outputs_of(configured(url=URL, connections=64))
    assert isinstance(output.sink, HttpSink)
    assert len(output.sink.lanes) == 64


def test_one_connection_is_what_nobody_has_to_ask_for() -> None:
    (output,) = outputs_of(configured(url=URL))
    assert isinstance(output.sink, HttpSink)
    assert output.sink.lanes == (output.sink,)


def test_a_time_that_is_no_number_is_refused() -> None:
    assert "output.read_timeout" in refused(read_timeout=float("nan"))


def test_a_key_without_its_certificate_is_refused() -> None:
    assert "needs output.client_certificate" in refused(client_key="key.pem")


@pytest.mark.parametrize("name", ["ca_file", "client_certificate"])
def test_files_that_are_missing_are_named(name: str) -> None:
    settings = replace(HttpSettings(url=URL), **{name: "/nowhere/x.pem"})
    with pytest.raises(ConfigError, match=f"output.{name} names /nowhere/x.pem, and there is no such file"):
        trust(settings)


def test_a_file_that_holds_no_certificate_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(ConfigError, match="certificates cannot be used"):
        trust(HttpSettings(url=URL, ca_file=str(file)))


def test_verification_is_on_unless_it_is_switched_off() -> None:
    checked, unchecked = (trust(HttpSettings(url=URL, verify=verify)) for verify in (True, False))
    assert (checked.check_hostname, checked.verify_mode.name) == (True, "CERT_REQUIRED")
    assert (unchecked.check_hostname, unchecked.verify_mode.name) == (False, "CERT_NONE")
