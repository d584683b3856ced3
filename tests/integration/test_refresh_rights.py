"""Who may begin a full load on PostgreSQL where rights are the least: the installer, and not the publisher."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import track
from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import InstallError, SourceError
from eventlog.daemon import Publisher
from eventlog.refresh import Refresh, loads
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.log import Log
from tests.integration.test_rights_postgresql import LOG, everybody
from tests.support.logged import run
from tests.support.xds_events import read_events


def refresh(engine: Engine) -> int:
    """Refreshes a table that stands in another schema than the log."""
    [load] = loads(engine, LOG, ["app.usr"], None, None)
    assert (load.called, load.tracked) == ("app.usr", True)
    work = Refresh(Log(engine, LOG), load)
    return list(work.steps(work.begin()))[-1].rows


def test_the_installer_may_and_the_publisher_publishes(postgresql: Engine, tmp_path: Path) -> None:
    with everybody(postgresql) as cast:
        run(cast.owner, "INSERT INTO app.usr VALUES (1, 'Jack'), (2, 'Ida')")
        run(cast.owner, "INSERT INTO app.usr_phone VALUES (1, '555')")
        give_rights(cast.admin, Roles(installer=cast.roles.installer), LOG, ["app.usr"])
        install(cast.installer, LOG)
        track(cast.installer, ["app.usr"], None, LOG)
        give_rights(cast.admin, Roles(writer=cast.roles.writer, publisher=cast.roles.publisher), LOG)
        with pytest.raises(SourceError, match=r"permission denied for table event_log.* needs INSERT on "):
            refresh(cast.publisher)
        with pytest.raises(InstallError, match=r"permission denied for table event_log.*rights --installer"):
            track(cast.publisher, ["app.usr"], None, LOG)
        with cast.admin.connect() as connection:
            assert connection.execute(text("SELECT count(*) FROM capture.event_log")).scalar_one() == 0
        assert refresh(cast.installer) == 2
        url = cast.publisher.url.render_as_string(hide_password=False)
        settings = Config(
            source=SourceConfig(url=url, log="capture.event_log", schema="app"),
            output=(FilesOutput(path=str(tmp_path)),),
        )
        with Publisher(settings) as publisher:
            publisher.run_once()
        told = [event for file in sorted(tmp_path.glob("*.xml")) for event in read_events(file.read_bytes())]
        assert [event.association for event in told] == ["idu=1,table=usr,schema=app", "idu=2,table=usr,schema=app"]
        assert [attribute.name for attribute in told[0].attributes] == ["fname", "usr_phone.phoneno"]
