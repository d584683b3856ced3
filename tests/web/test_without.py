"""Without the extra: what programs ask is answered as ever, and the page says what it needs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig, from_settings
from eventlog.core.errors import ConfigError
from eventlog.core.plugins import EndpointOrder, ServedEndpoint
from eventlog.daemon.health import PublisherHealth
from eventlog.daemon.logging import library_journal
from eventlog.web.endpoint import Endpoint
from eventlog.web.open_page import ENDPOINT, open_page
from eventlog.web.server import PageServer


@contextmanager
def endpoint(config: Config) -> Iterator[ServedEndpoint]:
    order = EndpointOrder(address="127.0.0.1:0", config=config, vitals=PublisherHealth(), journal=library_journal())
    made = ENDPOINT.open(order)
    assert made is not None
    try:
        yield made
    finally:
        made.close()


def test_a_stream_has_a_page_too(tmp_path: Path) -> None:
    gbase = {"path": str(tmp_path / "stream.bin"), "marks": str(tmp_path / "marks.json")}
    with endpoint(from_settings({"source": {"kind": "gbase", "gbase": gbase}}, {}, origin="the test")) as made:
        assert isinstance(made, PageServer)


def test_without_the_extra_there_are_figures(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with endpoint(Config(source=SourceConfig(url=str(sqlite.url)))) as made:
        assert isinstance(made, Endpoint)


def test_the_page_says_how_to_install_it(sqlite: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "eventlog.web.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    config = Config(source=SourceConfig(url=str(sqlite.url)))
    with pytest.raises(ConfigError, match=r"pip install 'itsdangerous"):
        open_page("127.0.0.1:0", config, library_journal())
