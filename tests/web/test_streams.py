"""The page of a publisher at a stream: its rows, what the rules say of one, its outputs; and in place of triggers a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from eventlog.config.settings import Config, SourceConfig, from_settings
from eventlog.daemon.logging import library_journal
from eventlog.web.open_page import open_page
from tests.integration.publishing import publish_all, until, url_of
from tests.integration.test_publisher_streams import SEED
from tests.web.visiting import Visit, watched


def config_of(place: Path) -> Config:
    gbase = {"path": str(place / "stream.hex"), "tables": {"111": "shop.t1"}, "keys": {"shop.t1": ["c3"]}}
    settings: dict[str, Any] = {
        "source": {"kind": "gbase", "gbase": gbase | {"marks": str(place / "marks.json")}},
        "output": [{"name": "one", "sink": "files", "path": str(place / "out")}],
    }
    return from_settings(settings, {}, origin="the test")


def test_a_stream_is_watched_as_a_log(sqlite: Engine, tmp_path: Path) -> None:
    watched(sqlite)
    (tmp_path / "stream.hex").write_text("\n".join(SEED))
    config = config_of(tmp_path)
    publish_all(config)
    page = open_page("127.0.0.1:0", Config(source=SourceConfig(url=url_of(sqlite))), library_journal())
    try:
        visit = Visit(page)
        assert "idu=1" in visit.get("/rows").body
        page.adopt(config)
        assert "shop.t1" in visit.get("/rows").body
        row = visit.get("/rows/1")
        assert row.status == 200
        assert "invalid" in row.body
        assert "abcabcabc" in row.body
        assert visit.get("/output?name=one").status == 200
        until(lambda: "its tables have no triggers" in visit.get("/").body, "the overview counts")
    finally:
        page.close()
