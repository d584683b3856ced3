"""Who aborts uploads asks where obstore asks, as who obstore is, and stops nobody's work. No server is asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest
from obstore.store import S3Store

from eventlog.sinks.store.uploads import _client, abort_uploads

KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


@pytest.fixture(autouse=True)
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys, and a file of profiles that obstore does not read beside them."""
    file = tmp_path / "credentials"
    file.write_text("[default]\naws_access_key_id = filed\naws_secret_access_key = filed\n")
    for name in ("AWS_ENDPOINT_URL", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    settings = dict(zip(KEYS, ("key", "secret", "token"), strict=True))
    for name, value in {
        **settings,
        "AWS_REGION": "eu-west-1",
        "AWS_SHARED_CREDENTIALS_FILE": str(file),
        "AWS_PROFILE": "nobody's",
    }.items():
        monkeypatch.setenv(name, value)


def store(**settings: Any) -> S3Store:
    return S3Store("bucket", prefix="a/b", client_options={"allow_http": True}, **settings)


def credentials(client: Any) -> tuple[str, str, str | None]:
    known = client._request_signer._credentials.get_frozen_credentials()
    return known.access_key, known.secret_key, known.token


@pytest.mark.parametrize(
    "settings,asked",
    [
        ({}, "https://s3.eu-west-1.amazonaws.com/bucket/k"),
        ({"region": "eu-north-1"}, "https://s3.eu-north-1.amazonaws.com/bucket/k"),
        ({"virtual_hosted_style_request": True}, "https://bucket.s3.eu-west-1.amazonaws.com/k"),
        ({"endpoint": "http://127.0.0.1:9/below"}, "http://127.0.0.1:9/below/bucket/k"),
        ({"endpoint": "https://bucket.example", "virtual_hosted_style_request": True}, "https://bucket.example/k"),
    ],
)
def test_endpoint_region_and_keys_are_those_of_obstore(settings: dict[str, Any], asked: str) -> None:
    client = _client(store(**settings))
    signed = client.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "k"})
    assert signed.partition("?")[0] == asked
    assert client.meta.region_name == settings.get("region", "eu-west-1")
    assert credentials(client) == ("key", "secret", "token")


def test_the_endpoint_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert _client(store()).meta.endpoint_url == "http://127.0.0.1:9"


def test_credentials_of_a_profile_are_those_that_obstore_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)

    class Profile:
        config: ClassVar[Any] = {}

        def __call__(self) -> Any:
            return {"access_key_id": "k", "secret_access_key": "s", "token": None, "expires_at": None}

    assert credentials(_client(store(credential_provider=Profile()))) == ("k", "s", None)


@pytest.mark.parametrize("missing", ["the library", "an answer"])
def test_what_cannot_be_aborted_now_is_no_error(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "the library":
        monkeypatch.setitem(sys.modules, "boto3", None)
    assert not abort_uploads(store(endpoint="http://127.0.0.1:1"), ["a"])
