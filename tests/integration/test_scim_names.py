"""Users who give their names to each other, and groups that share theirs: the server has what the tables have, whatever fails."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from tests.integration.publishing import publish_all
from tests.integration.scim_histories import play
from tests.integration.scim_people import given
from tests.support.scim import ends, judge, run, scim_config, told, wanted


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


GIVEN_ON = {
    "a deleted user's name": [
        "DELETE FROM usr WHERE idu = 4",
        "INSERT INTO usr (idu, login, fname) VALUES (9, 'dan', 'Daniela')",
    ],
    "one after the other": ["UPDATE usr SET login = 'eve' WHERE idu = 4", "UPDATE usr SET login = 'dan' WHERE idu = 2"],
    "each other's": [
        "UPDATE usr SET login = 'between' WHERE idu = 4",
        "UPDATE usr SET login = 'dan' WHERE idu = 2",
        "UPDATE usr SET login = 'bob' WHERE idu = 4",
    ],
    "for a while": [
        "UPDATE usr SET login = 'eve' WHERE idu = 4",
        "UPDATE usr SET login = 'dan' WHERE idu = 2",
        "UPDATE usr SET login = 'fay' WHERE idu = 4",
        "UPDATE usr SET login = 'eve' WHERE idu = 2",
    ],
}


@pytest.mark.parametrize("style", ["row-back", "image", "field"])
@pytest.mark.parametrize("statements", GIVEN_ON.values(), ids=GIVEN_ON)
def test_users_may_give_their_names_to_each_other_at_the_same_time(
    engine: Engine, style: str, statements: list[str]
) -> None:
    with judge() as server:
        given(engine, style)
        run(engine, "UPDATE usr SET boss = NULL")
        config = scim_config(engine, server.url)
        publish_all(config)
        before = {user["id"] for user in server.resources("User")}
        run(engine, *statements)
        publish_all(config)
        assert not ends(engine)
        assert told(server) == wanted(engine)
        changed = {user["id"] for user in server.resources("User")} ^ before
        assert len(changed) == (2 if "INSERT" in "".join(statements) else 0), "nobody is another user than before"


@pytest.mark.parametrize("style", ["row-back", "image", "field"])
@pytest.mark.parametrize("share", [0.0, 0.05], ids=["without trouble", "with trouble"])
def test_a_server_has_what_the_tables_have_after_any_history(tmp_path: Path, style: str, share: float) -> None:
    first = int(os.environ.get("EVENTLOG_SEED") or random.SystemRandom().randrange(10**6))
    for seed in range(first, first + int(os.environ.get("EVENTLOG_HISTORIES", "3"))):
        engine = create_engine(f"sqlite:///{tmp_path}/{seed}.db")
        assert play(engine, seed, style, share) >= 4
        engine.dispose()


@pytest.mark.parametrize("style", ["row-back", "image", "field"])
@pytest.mark.parametrize("share", [0.0, 0.05], ids=["without trouble", "with trouble"])
def test_a_server_has_what_the_tables_have_whatever_operators_do(tmp_path: Path, style: str, share: float) -> None:
    first = int(os.environ.get("EVENTLOG_SEED") or random.SystemRandom().randrange(10**6))
    for seed in range(first, first + int(os.environ.get("EVENTLOG_HISTORIES", "2"))):
        engine = create_engine(f"sqlite:///{tmp_path}/{seed}.db")
        assert play(engine, seed, style, share, is_cared=True) >= 4
        engine.dispose()


def test_a_member_leaves_though_the_one_who_takes_the_place_is_made_later(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        run(engine, "DELETE FROM usr_grp WHERE idu = 2")
        config = scim_config(engine, server.url)
        publish_all(config)
        server.meddle = lambda method, path: time.sleep(0.5 if method == "POST" and path.endswith("/Users") else 0)
        run(
            engine,
            "INSERT INTO usr (idu, login) VALUES (9, 'new')",
            "DELETE FROM usr_grp WHERE idu = 1",
            "INSERT INTO usr_grp VALUES (1, 9)",
        )
        publish_all(config)
        assert server.members("staff") == {"new"}
        assert not ends(engine)
