"""A conversion reads rows by the definitions of their time: what it makes is what a publisher makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style
from eventlog.convert import step
from tests.support.altered_logs import altered_log, convert, published, said


@pytest.mark.parametrize(
    "database, style",
    [
        ("postgresql", Style.IMAGE),
        ("postgresql", Style.FIELD),
        ("postgresql", Style.ROW_BACK),
        ("postgresql", Style.FIELD_BACK),
        ("mariadb", Style.IMAGE),
        ("sqlite", Style.IMAGE),
        ("sqlite", Style.FIELD),
    ],
)
def test_a_log_with_alterations_gives_what_the_publisher_makes_of_it(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, style: Style
) -> None:
    engine: Engine = request.getfixturevalue(database)
    altered_log(engine, style)
    convert(engine, tmp_path / "whole", "--engine", "local", "--jobs", "1")
    monkeypatch.setattr(step, "CHUNK_ROWS", 2)
    convert(engine, tmp_path / "pieces", "--engine", "local", "--jobs", "1")
    published(engine, tmp_path / "published")
    expected = said(tmp_path / "published")
    for folder in ("whole", "pieces"):
        found = said(tmp_path / folder)
        for name, what in expected.items():
            assert found[name] == what, (folder, name)
