"""What a webhook can be told, and its signature."""

from __future__ import annotations

import hashlib
import hmac
import time
from base64 import b64decode, b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.config.settings import from_settings
from eventlog.core.errors import ConfigError
from eventlog.sinks.http.pause import read_retry_after
from eventlog.sinks.webhook.plugin import WebhookOutput, content_type
from eventlog.sinks.webhook.settings import secret_bytes
from eventlog.sinks.webhook.signing import message_id, signatures

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
"""The secret of the example that every library of Standard Webhooks is tested with."""


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    key = secret_bytes(SECRET)
    assert key is not None
    made = signatures([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@given(st.lists(st.binary(min_size=24, max_size=64), min_size=1, max_size=3), st.binary(), st.integers(0, 2**40))
def test_each_secret_signs_id_time_and_body(keys: list[bytes], body: bytes, now: int) -> None:
    identity = message_id("000000000001-ab", "00000000000000000007")
    made = signatures(keys, identity, now, body).split(" ")
    for key, one in zip(keys, made, strict=True):
        expected = hmac.new(key, identity.encode() + f".{now}.".encode() + body, hashlib.sha256).digest()
        assert b64decode(one.removeprefix("v1,")) == expected
        assert secret_bytes(f"whsec_{b64encode(key).decode()}") == key


@pytest.mark.parametrize(
    "plan, document, told", [("p-1", "07.02", "p-1_07_02"), ("", "07", "07"), ("p", "0_1", "p_0_1")]
)
def test_an_id_has_no_dot(plan: str, document: str, told: str) -> None:
    assert message_id(plan, document) == told


@pytest.mark.parametrize(
    "text, seconds",
    [
        *[("7", 7), (" 90 ", 90), ("", 0), ("soon", 0), ("-1", 0)],
        *[("Thu, 01 Jan 1970 00:02:00 GMT", 20), ("Thu Jan  1 00:02:00 1970", 20), ("Thu Jan  1 00:01:00 1970", 0)],
    ],
)
def test_a_receiver_says_how_long_to_wait(text: str, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert read_retry_after(text, now=100.0) == seconds
    finally:
        monkeypatch.undo()
        time.tzset()


LOGIN = {"oauth_url": "https://id/", "oauth_client_id": "me", "oauth_client_secret": "plain"}


@pytest.mark.parametrize(
    "settings, why",
    [
        ({**LOGIN, "authorization": "Bearer x"}, "two logins"),
        ({**LOGIN, "oauth_url": "ftp://id"}, "output.oauth_url is no address"),
        ({"secrets": ()}, "output.secrets is empty"),
        ({"secrets": ("whsec_c2hvcnQ=",)}, "output.secrets[0] is no secret of Standard Webhooks"),
        ({"secrets": (SECRET, "plain")}, "output.secrets[1] is no secret"),
        ({"oauth_url": "https://id/token"}, "belong together"),
        ({"url": "https://{table}.net/"}, "a brace outside of its path"),
        ({"url": "https://a.net/x?t={table}"}, "a brace outside of its path"),
        ({"url": "https://a.net/{tabel}"}, "output.url names {tabel}"),
        ({"url": "https://a.net/{{x}}"}, "no field in them"),
        ({"proxy": "socks5://p:1"}, "output.proxy is no address of a proxy"),
        ({"connections": 65}, "between 1 and 64"),
        ({"url": "https://a.net/{table}", "format": "xds"}, "output.url has a field"),
    ],
)
def test_settings_that_cannot_be_are_refused_without_secrets(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        webhook(**settings)
    assert why in str(caught.value)
    assert "plain" not in str(caught.value)


@pytest.mark.parametrize(
    "url, base, below",
    [
        ("https://a.net/in/{schema}/{table}/x?k=1", "https://a.net/in?k=1", ("schema", "table")),
        ("https://a.net/{table}", "https://a.net", ("table",)),
        ("https://a.net/in", "https://a.net/in", None),
    ],
)
def test_an_address_may_have_the_table(url: str, base: str, below: tuple[str, ...] | None) -> None:
    made = webhook(url=url)
    assert made.base == base
    assert (made.address.fields if made.address else None) == below


def test_a_configuration_names_it_with_its_format() -> None:
    output = {"sink": "webhook", "url": "https://a.net/", "secrets": [SECRET], "format": "cloudevents"}
    read = from_settings({"output": [{**output, "cloudevents": {"batch_size": 5}}]}, {}, origin="a test")
    [made] = read.output
    assert isinstance(made, WebhookOutput)
    assert content_type(made, ".json").startswith("application/cloudevents-batch+json")
    assert SECRET not in repr(read)
    assert content_type(webhook(), ".json") == "application/json"
    assert content_type(webhook(format="xds"), ".xml") == "application/xml; charset=utf-8"


def webhook(**settings: Any) -> WebhookOutput:
    return WebhookOutput(**{"url": "https://a.net/", "secrets": (SECRET,), **settings})
