"""A publisher without triggers that is killed again and again: the mirror of its change tables ends as the table is."""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from tests.integration.publishing import until, url_of
from tests.support.compared import compared, made_source, random_row, sides
from tests.support.forking import Forked

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


def published(lake: Engine) -> int:
    """How many changes have arrived."""
    with lake.connect() as connection:
        if not sa.inspect(connection).has_table("usr__ct"):
            return 0
        return int(connection.exec_driver_sql("SELECT count(*) FROM usr__ct").scalar_one())


def arrived(lake: Engine, before: int, said: Path) -> None:
    """Waits for more changes than there were; what the publisher said is shown where none come."""
    try:
        until(lambda: published(lake) > before, "changes arrive")
    except AssertionError as error:
        raise AssertionError(said.read_text()[-5000:]) from error


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    """With --long they fall otherwise in each run; EVENTLOG_SEED repeats one."""
    usual = random.randrange(2**32) if request.config.getoption("--long") else 1
    seed = int(os.environ.get("EVENTLOG_SEED", usual))
    sys.stdout.write(f"EVENTLOG_SEED={seed}\n")
    return random.Random(seed)


def written(dice: random.Random, source: Engine, table: sa.Table) -> None:
    """Rows come, go and change."""
    rows = {row["id"]: row for row in (random_row(dice, "number", dice.randrange(2000)) for _ in range(300))}
    with source.begin() as connection:
        connection.execute(table.delete().where(table.c.id.in_(list(rows))))
        connection.execute(table.insert(), [row for row in rows.values() if dice.random() < 0.75])


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "places",
    [
        "sqlite, file",
        "sqlite, postgresql",
        *[
            pytest.param(pair, marks=pytest.mark.long)
            for pair in ("postgresql, file", "postgresql, postgresql", "mariadb, mariadb")
        ],
    ],
)
def test_a_publisher_that_is_killed_again_and_again(
    places: str, dice: random.Random, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """`places` are the source, and the state."""
    at, kept = places.split(", ")
    source: Engine = request.getfixturevalue(at)
    table = made_source(source, "number")
    lake = sa.create_engine(f"sqlite:///{tmp_path / 'lake.db'}")
    file = tmp_path / "eventlog.toml"
    state = FILES if kept == "file" else f'state = "{url_of(request.getfixturevalue(kept))}"\n'
    config = CONFIG.replace(FILES, state)
    file.write_text(config.format(source=url_of(source), lake=url_of(lake), folder=tmp_path))
    kills = int(os.environ.get("EVENTLOG_KILLS", "100" if request.config.getoption("--long") else "3"))
    said, amid = tmp_path / "journal", 0
    for number in range(kills):
        written(dice, source, table)
        before = published(lake)
        with said.open("wb") as journal:
            process = Forked("run", "--config", str(file), environment=os.environ, err=journal)
        if number % 2:  # else it may be killed before it has anything
            arrived(lake, before, said)
        time.sleep(dice.uniform(0, 1.0))
        process.kill()
        process.wait()
        amid += published(lake) > before
    assert amid >= kills // 2
    expect_mirrored(source, lake, file)
    lake.dispose()
