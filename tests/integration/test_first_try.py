"""The first try with one user: everything is the publisher's own doing, and three commands say why nothing comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.check.point import Point, PointLevel
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import OK
from eventlog.sql.dialect import dialect_of
from tests.support.logged import USR, run


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def told(engine: Engine, *, user: str | None = None, allow: bool = False) -> list[Point]:
    source = SourceConfig(url=url_of(engine), user=user)
    config = Config(source=source, publisher=PublisherConfig(allow_loopback=allow))
    return [point for point in check(lambda: config) if point.name == "loopback"]


def test_run_and_track_say_why_nothing_comes_out(
    engine: Engine, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    users = not dialect_of(engine).embedded
    where = ["--database", url_of(engine)]
    install(engine)
    run(engine, *USR)
    assert exit_code(["track", "usr", *where]) == OK
    assert ("changes: `eventlog check` says more" in capfd.readouterr().err) == users
    run(engine, "INSERT INTO usr (idu) VALUES (1)")
    assert exit_code(["run", "--once", *where]) == OK
    found = capfd.readouterr()
    assert ("<nds" in found.out) != users
    assert ("loopback=1" in found.err) == users
    assert ("Every row was made by the publisher's own user" in " ".join(found.err.split())) == users
    Path("eventlog.toml").write_text("[publisher]\nallow_loopback = true\n")
    assert exit_code(["track", "usr", *where]) == OK
    run(engine, "INSERT INTO usr (idu) VALUES (2)")
    assert exit_code(["run", "--once", *where]) == OK
    again = capfd.readouterr()
    assert "<nds" in again.out
    assert "not published" not in again.err


def test_check_warns_of_a_publisher_that_may_write(engine: Engine) -> None:
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"])
    if dialect_of(engine).embedded:
        assert told(engine) == []
        return
    (point,) = told(engine)
    assert point.level is PointLevel.WARNING
    assert "usr; what the publisher's own user changes is not published" in point.said
    assert [point.level for point in told(engine, allow=True)] == [PointLevel.OK]


def test_who_may_only_read_is_no_trouble(postgresql: Engine) -> None:
    run(postgresql, *USR, *(f"CREATE TABLE t{place} (id INTEGER PRIMARY KEY)" for place in range(7)))
    run(postgresql, "CREATE ROLE idm_first")
    try:
        install(postgresql)
        track(postgresql, ["*"])
        give_rights(postgresql, Roles(publisher="idm_first"))
        assert [point.level for point in told(postgresql, user="idm_first")] == [PointLevel.OK]
        assert " and 3 more; " in told(postgresql)[0].said
    finally:
        run(postgresql, "DROP OWNED BY idm_first", "DROP ROLE idm_first")
