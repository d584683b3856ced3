"""The database of a command: its connections are closed when the command ends, however it ends."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from sqlalchemy import event, text

from eventlog.cli.site import Site, site_options


@pytest.mark.parametrize("fails", [False, True])
def test_a_command_closes_the_connections_of_its_database(fails: bool, tmp_path: Path) -> None:
    closed: list[object] = []

    @click.command()
    @site_options
    def works(site: Site) -> None:
        engine = site.engine(may_create=True)
        event.listen(engine, "close", lambda *_: closed.append(engine))
        with engine.connect() as connection:
            connection.execute(text("SELECT 1"))
        if fails:
            raise click.ClickException("it was no use")

    done = CliRunner().invoke(works, ["--database", f"sqlite:///{tmp_path / 'app.db'}"])
    assert (done.exit_code, len(closed)) == (int(fails), 1), done.output
