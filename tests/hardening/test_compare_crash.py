"""A publisher without triggers whose server is stopped at once, again and again: its mirror ends as the table is."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.hardening.quantity import scaled
from tests.hardening.troubles import own_server
from tests.integration.publishing import url_of
from tests.integration.test_compare_killed import CONFIG, FILES, arrived, dice, expect_mirrored, published, written
from tests.support.compared import made_source
from tests.support.forking import Forked

__all__ = ["dice"]


@pytest.mark.in_turn
@pytest.mark.parametrize("kept", ["file", "database"])
def test_a_server_that_is_stopped_at_once_loses_and_doubles_nothing(
    kept: str, tmp_path: Path, dice: random.Random, request: pytest.FixtureRequest
) -> None:
    lake = sa.create_engine(f"sqlite:///{tmp_path / 'lake.db'}")
    crashes = 20 if request.config.getoption("--long") else 2
    with own_server() as (source, crash):
        table = made_source(source, "number")
        file = tmp_path / "eventlog.toml"
        config = CONFIG if kept == "file" else CONFIG.replace(FILES, f'state = "{url_of(source)}"\n')
        file.write_text(config.format(source=url_of(source), lake=url_of(lake), folder=tmp_path))
        said = tmp_path / "journal"
        with said.open("wb") as journal:
            publisher = Forked("run", "--config", str(file), environment=os.environ, err=journal)
        try:
            for _ in range(scaled(crashes)):
                before = published(lake)
                written(dice, source, table)
                if dice.random() < 0.7:
                    arrived(lake, before, said)
                time.sleep(dice.uniform(0, 0.5))
                crash()
            assert publisher.poll() is None, "the publisher lives on"
        finally:
            publisher.kill()
            publisher.wait()
        expect_mirrored(source, lake, file)
    lake.dispose()
