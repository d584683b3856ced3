"""Secrets in a configuration: found wherever they stand, so that the journal can leave them out."""

from __future__ import annotations

from eventlog.config.settings import from_settings
from eventlog.core.secrets import secret_paths

SETTINGS = {
    "source": {"url": "postgresql://idm:p%40ss@db/app", "linter": {"connect": {"user": "x", "password": "linter"}}},
    "output": [
        {"sink": "http", "url": "https://receiver.example/in", "authorization": "Bearer abc"},
        {"sink": "kafka", "servers": "k:9092", "sasl": "plain", "user": "u", "password": "kafka", "tls": True},
        {"sink": "database", "url": "mysql+pymysql://u:tables@db/x"},
    ],
    "web": {"token": "a-token-of-sixteen"},
}


def test_every_secret_is_found_and_nothing_else() -> None:
    found = {secret for _, secret in secret_paths(from_settings(SETTINGS, {}, origin="the test"))}
    assert found == {"p%40ss", "p@ss", "linter", "Bearer abc", "abc", "kafka", "tables", "a-token-of-sixteen"}


def test_what_is_no_url_holds_none() -> None:
    assert list(secret_paths({"url": "http://u@[::1", "path": "out"})) == []
