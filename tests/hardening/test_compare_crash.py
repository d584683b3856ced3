"""A publisher without triggers whose server is stopped at once, again and again: its mirror ends as the table is."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from tests.hardening.quantity import scaled
from tests.hardening.troubles import own_server
from tests.integration.publishing import until, url_of
from tests.integration.test_compare_killed import CONFIG, expect_mirrored
from tests.support.compared import made_source, random_row


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the owner of the server may enter."""
    made = Path(tempfile.mkdtemp(prefix="eventlog-hard-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def published(lake: Engine) -> int:
    """How many changes have arrived."""
    with lake.connect() as connection:
        if not sa.inspect(connection).has_table("usr__ct"):
            return 0
        return int(connection.exec_driver_sql("SELECT count(*) FROM usr__ct").scalar_one())


@pytest.mark.in_turn
def test_a_server_that_is_stopped_at_once_loses_and_doubles_nothing(folder: Path) -> None:
    dice = random.Random(4)
    lake = sa.create_engine(f"sqlite:///{folder / 'lake.db'}")
    with own_server(folder) as (source, crash):
        table = made_source(source, "number")
        file = folder / "eventlog.toml"
        file.write_text(CONFIG.format(source=url_of(source), lake=url_of(lake), folder=folder))
        command = [sys.executable, "-m", "eventlog", "run", "--config", str(file)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as publisher:
            for _ in range(scaled(2)):
                before = published(lake)
                rows = {row["id"]: row for row in (random_row(dice, "number", dice.randrange(900)) for _ in range(200))}
                with source.begin() as connection:
                    connection.execute(table.delete().where(table.c.id.in_(list(rows))))
                    connection.execute(table.insert(), [row for row in rows.values() if dice.random() < 0.8])
                if dice.random() < 0.7:
                    until(lambda: published(lake) > before, "changes arrive")  # noqa: B023  # used at once
                crash()
            assert publisher.poll() is None, "the publisher lives on"
            publisher.kill()
        expect_mirrored(source, lake, file)
    lake.dispose()
