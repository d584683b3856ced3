"""A publisher without triggers that is killed again and again: the mirror of its change tables ends as the table is."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from tests.integration.publishing import url_of
from tests.support.compared import compared, made_source, random_row, sides

KILLS = int(os.environ.get("EVENTLOG_KILLS", "3"))
FILES = """state = "{folder}/state.db"
marks = "{folder}/marks.json"
"""
CONFIG = """
[source]
kind = "compare"
url = "{source}"
tables = ["usr"]
[source.compare]
state = "{folder}/state.db"
marks = "{folder}/marks.json"
[publisher]
polling_interval = 1
[[output]]
format = "change-tables"
sink = "database"
url = "{lake}"
"""


def expect_mirrored(source: Engine, lake: Engine, file: Path) -> None:
    """What waits is published; then the mirror equals the table, and no change came twice."""
    assert exit_code(["run", "--until-empty", "--config", str(file)]) == 0
    assert exit_code(["apply", "--database", url_of(lake)]) == 0
    mine, other, columns, _ = sides(source, lake, "usr__mirror")
    assert compared(mine, other, columns) == []
    with lake.connect() as connection:
        twice = "SELECT count(*) - count(DISTINCT header__change_seq || header__change_oper) FROM usr__ct"
        assert connection.exec_driver_sql(twice).scalar_one() == 0


@pytest.fixture(params=["file", "postgresql", pytest.param("mariadb", marks=pytest.mark.long)])
def state(request: pytest.FixtureRequest) -> str:
    """Where the state is kept: nothing for files, else the setting."""
    return "" if request.param == "file" else f'state = "{url_of(request.getfixturevalue(request.param))}"\n'


@pytest.fixture(
    params=[
        "sqlite",
        *[pytest.param(one, marks=pytest.mark.long) for one in ("postgresql", "mariadb")],
    ]
)
def source(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.getfixturevalue(request.param)
    return found


def test_a_publisher_that_is_killed_again_and_again(source: Engine, state: str, tmp_path: Path) -> None:
    dice = random.Random(1)
    table = made_source(source, "number")
    lake = sa.create_engine(f"sqlite:///{tmp_path / 'lake.db'}")
    file = tmp_path / "eventlog.toml"
    config = CONFIG.replace(FILES, state) if state else CONFIG
    file.write_text(config.format(source=url_of(source), lake=url_of(lake), folder=tmp_path))
    for _ in range(KILLS):
        with source.begin() as connection:
            for number in range(300):
                row = random_row(dice, "number", dice.randrange(2000))
                connection.execute(table.delete().where(table.c.id == row["id"]))
                if number % 4:
                    connection.execute(table.insert(), [row])
        command = [sys.executable, "-m", "eventlog", "run", "--config", str(file)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            time.sleep(dice.uniform(0.5, 2.0))
            process.send_signal(signal.SIGKILL)
    expect_mirrored(source, lake, file)
    lake.dispose()
