"""Addresses of http and https: nothing of their logins, queries and fragments is shown anywhere."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eventlog.config.build import name_of
from eventlog.config.settings import Config, from_settings, load
from eventlog.config.weak_secrets import find_secrets
from eventlog.core.errors import ConfigError, SinkError
from eventlog.core.secrets import bare_address, mask_secrets
from eventlog.daemon.logging import journal
from eventlog.init.first import FirstAnswers, first_configuration
from eventlog.init.origins import settings_in_force, what_was_written
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.post import Poster
from tests.support.cost import seconds
from tests.support.examples import examples
from tests.support.shares import met, shares

MARK = "geheim"
SIGNING = "whsec_" + "A" * 40


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map("".join)


SECRETS = joined(st.text("aZ09-_.~!*", max_size=8), st.just(MARK), st.text("aZ09-_.~%2F+:@/?=;,'()[]\"\\", max_size=8))
"""What may stand in a query, with signs that mean something elsewhere in an address."""
LOGIN_SECRETS = joined(st.just(MARK), st.text("aZ09-_.~%2F", max_size=8))
NAMES = st.text("abkZ09-_.~", min_size=1, max_size=6) | st.sampled_from(["k", "code", "sig", "password", "api-version"])
PARAMETERS = (
    joined(NAMES, st.just("="), SECRETS)
    | SECRETS.map(lambda secret: secret.replace("=", ""))
    | joined(st.just(MARK), st.sampled_from(["=", "=="]))
)
QUERIES = st.lists(PARAMETERS, min_size=1, max_size=3).map("&".join)
PLACES = joined(
    st.sampled_from(["hooks.example.net", "127.0.0.1", "[::1]"]),
    st.sampled_from(["", ":8443"]),
    st.sampled_from(["", "/", "/in", "/in/a@b"]),
)
LOGINS = LOGIN_SECRETS.map(lambda secret: f"{secret}@") | LOGIN_SECRETS.map(lambda secret: f"u:{secret}@")
ENDS = joined(
    QUERIES.map(lambda query: f"?{query}") | st.just(""), LOGIN_SECRETS.map(lambda secret: f"#{secret}") | st.just("")
)
ADDRESSES = joined(st.sampled_from(["http://", "https://", "HTTPS://"]), LOGINS | st.just(""), PLACES, ENDS)


@example("?0", "=", f"http://hooks.example.net?0={MARK}&{MARK}=", "")
@given(st.text(), st.sampled_from([" ", '"', "'", "(", "<", "=", "url=", "[", "\n", ": "]), ADDRESSES, st.text())
def test_no_text_shows_a_secret_of_an_address(before: str, sign: str, address: str, after: str) -> None:
    before, after = before.replace("://", ""), after.replace(MARK, "")
    found = mask_secrets(f"{before}{sign}{address} {after}")
    assert MARK not in found
    assert mask_secrets(found) == found
    assert mask_secrets(f'["https://a.example/","{address}"]').count(MARK) == 0


def configured(address: str, beside: str) -> dict[str, object]:
    """A configuration with an address wherever there is room for one."""
    return {
        "source": {"url": "sqlite:///app.db"},
        "output": [
            {"sink": "http", "url": address, "proxy": beside},
            {"sink": "webhook", "url": address, "secrets": [SIGNING], "oauth_url": address}
            | {"oauth_client_id": "id", "oauth_client_secret": MARK},
            {"sink": "kafka", "servers": "k:9092", "format": "messages", "registry": address},
            {"sink": "files", "path": "s3://bucket/out", "store": {"endpoint": address}},
        ],
    }


def shown_of(config: Config) -> str:
    """What `config` prints of it, and what is said of its outputs."""
    shown = msgspec.json.encode([*settings_in_force(config, {}, everything=True)]).decode()
    names = [name_of(output) for output in config.output]
    posters = [Poster(settings).address for settings in config.output if isinstance(settings, HttpSettings)]
    return f"{shown} {names} {posters} {config!r}"


@shares(read=0.3)
@examples(10)
@given(ADDRESSES, joined(st.just("http://u:"), LOGIN_SECRETS, st.just("@proxy:3128")))
def test_no_place_of_a_configuration_shows_one(address: str, proxy: str) -> None:
    config, refused = None, ""
    try:
        config = from_settings(configured(address, proxy), {}, origin="the test")
    except ConfigError as error:
        refused = str(error)
    assert MARK not in refused
    if config is None:
        return
    met(read=True)
    assert MARK not in shown_of(config)
    assert MARK not in bare_address(address)
    written = io.StringIO()
    journal("json", stream=written).warning("failed", at=address, error=SinkError(f"{address} said no"), all=[address])
    assert MARK not in written.getvalue()


@given(joined(st.just("https://h.example/in"), ENDS))
def test_a_first_configuration_has_none(address: str) -> None:
    with suppress(ConfigError):
        first = first_configuration(FirstAnswers(url="sqlite:///app.db", sink="http", place=address))
        assert MARK not in first.text


@pytest.mark.parametrize(
    "address, shown",
    [
        ("https://h/in?k=1&code=abc", "https://h/in?k=***&code=***"),
        ("https://h/in?abc", "https://h/in?***"),
        ("https://h/in?YWJj==&a=", "https://h/in?***&***"),
        ("https://token@h:8443/in", "https://***@h:8443/in"),
        ("https://u:p/w@h/in#x", "https://***@h/in#***"),
        ("https://h:8443/in", "https://h:8443/in"),
        ("https://h/in?next=https://x/?k=1", "https://h/in?next=***"),
        ("https://a/in,https://b/in?k=1", "https://a/in,https://b/in?k=***"),
        ("https://${U}:${P}@h/?k=***", "https://***@h/?k=***"),
        ("postgresql://u@h/d?sslmode=require", "postgresql://u@h/d?sslmode=require"),
        ("https://h/in? is where it goes: a=b", "https://h/in? is where it goes: a=b"),
    ],
)
def test_what_is_left_of_an_address(address: str, shown: str) -> None:
    assert mask_secrets(address) == shown


FILE = """\
[source]
url = "sqlite:///app.db"
[[output]]
sink = "http"
url = "https://h.example/in?k=open&code=${CODE}"
[[output]]
sink = "http"
url = "https://h.example/${PLACE}?code=${CODE}"
proxy = "http://${CODE}:${PLACE}@proxy:3128"
"""


def test_config_says_how_it_was_written_unless_that_tells_one(tmp_path: Path) -> None:
    file = tmp_path / "eventlog.toml"
    file.write_text(FILE)
    environment = {"CODE": "geheim-code", "PLACE": "x"}
    config = load(file, environment)
    found = {one.key: one.value for one in settings_in_force(config, what_was_written(file, environment, {}))}
    assert found["output[0].url"] == "https://h.example/in?k=***&code=***"
    assert found["output[1].url"] == "https://h.example/${PLACE}?code=${CODE}"
    assert found["output[1].proxy"] == "http://${CODE}:${PLACE}@proxy:3128"
    assert MARK not in json.dumps(found)


def test_what_a_library_repeats_of_a_query_is_hidden_too() -> None:
    config = from_settings(configured("https://h/in?k=geheim%2Dlang+1&v=2", "http://p"), {}, origin="the test")
    known = find_secrets(config)
    for said in ("url: /in?k=geheim%2Dlang+1", "geheim-lang 1 is no key", "key 'geheim%2Dlang+1'"):
        assert MARK not in mask_secrets(said, known.words)
    assert "2" not in known.words, "a short value is hidden in addresses alone"
    assert not known.weak


@pytest.mark.parametrize("text", ["http://", "http://a?", "https://@", "http://a:b@", "http://a?b=&", "http://:a/"])
def test_a_long_text_of_addresses_takes_time_by_its_length_alone(text: str) -> None:
    assert seconds(lambda: mask_secrets(text * (100_000 // len(text)) + "://=")) < 5
