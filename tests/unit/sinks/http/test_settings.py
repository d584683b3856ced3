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
from eventlog.sinks.http.oauth import OauthSettings
from eventlog.sinks.http.plugin import HttpOutput
from eventlog.sinks.http.sink import HttpSink

URL = "https://idm.example/xds"


def configured(environment: dict[str, str] | None = None, **keys: Any) -> Config:
    return from_settings({"output": [{"sink": "http", **keys}]}, environment or {}, origin="my.toml")


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


ADDRESSES = (
    "",
    "idm.example",
    "ftp://idm.example/",
    "http://",
    "http://a:99999/",
    "http://a b/",
    "http://ä/",
    "http://[x/",
)
REFUSED: list[tuple[dict[str, Any], str]] = [
    *[({"url": url}, "output.url is no address") for url in ADDRESSES],
    ({"url": "https://idm:s3cret@idm.example/"}, "Write them as `authorization`"),
    *[({"authorization": value}, "output.authorization") for value in ("Bearer s3cret\r\nX: y", "Bearer s3crét", " ")],
    ({"connect_timeout": 0}, "output.connect_timeout is 0"),
    ({"read_timeout": 0}, "output.read_timeout is 0"),
    ({"read_timeout": float("nan")}, "output.read_timeout"),
    ({"total_timeout": 0}, "output.total_timeout is 0"),
    ({"reply_limit": 0}, "output.reply_limit is 0"),
    *[({"connections": n}, f"output.connections is {n}; it must be between 1 and 64") for n in (0, 65, -1)],
    ({"client_key": "key.pem"}, "needs output.client_certificate"),
]


@pytest.mark.parametrize("keys, said", REFUSED)
def test_settings_that_cannot_be_are_refused_without_secrets(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configured(**{"url": URL, **keys})
    assert said in str(caught.value)
    assert "s3c" not in str(caught.value)


@pytest.mark.parametrize("connections", [1, 64])
def test_an_output_becomes_a_sink_with_its_connections(connections: int) -> None:
    (output,) = outputs_of(configured(url=URL, connections=connections))
    assert isinstance(output.sink, HttpSink)
    assert (output.sink.last(), len(output.sink.lanes)) == ("", connections)
    assert connections > 1 or output.sink.lanes == (output.sink,)


@pytest.mark.parametrize("name", ["ca_file", "client_certificate"])
def test_files_that_are_missing_are_named(name: str) -> None:
    settings = replace(HttpSettings(url=URL), **{name: "/nowhere/x.pem"})
    with pytest.raises(ConfigError, match=f"output.{name} names /nowhere/x.pem, and there is no such file"):
        trust(settings)


def test_a_file_that_holds_no_certificate_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(ConfigError, match=r"certificates .+ cannot be used"):
        trust(HttpSettings(url=URL, ca_file=str(file)))


def test_verification_is_on_unless_it_is_switched_off() -> None:
    checked, unchecked = (trust(HttpSettings(url=URL, verify=verify)) for verify in (True, False))
    assert (checked.check_hostname, checked.verify_mode.name) == (True, "CERT_REQUIRED")
    assert (unchecked.check_hostname, unchecked.verify_mode.name) == (False, "CERT_NONE")


@pytest.mark.parametrize("name", ["ca_file", "client_certificate"])
def test_certificates_need_an_address_with_tls(name: str) -> None:
    with pytest.raises(ConfigError, match=f"output.{name} is about TLS, and output.url begins with http://"):
        HttpSettings(url="http://idm.example/xds", **{name: "x.pem"})  # type: ignore[arg-type]  # a text for each
    login = {"oauth_client_id": "a", "oauth_client_secret": "b", name: "x.pem"}
    settings = OauthSettings(url="http://idm.example/xds", oauth_url="https://login.example/", **login)  # type: ignore[arg-type]  # texts
    assert getattr(settings.token_endpoint(), name) == "x.pem"
    settings = OauthSettings(url="https://idm.example/xds", oauth_url="http://login.example/", **login)  # type: ignore[arg-type]  # texts
    assert getattr(settings.token_endpoint(), name) is None
