"""A SCIM server is compared with the tables, object by object, and gets what differs: by `verify` and by `refresh`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, create_engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.cli.main import main
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import RefreshPace, loads
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from eventlog.verify.verifying import Verified
from eventlog.web.loading import Loading
from tests.integration.publishing import publish_all, until
from tests.integration.scim_people import ALONE, given
from tests.support.scim import (
    ENTERPRISE,
    MAPPING,
    TOKEN,
    Judge,
    ends,
    judge,
    run,
    scim_config,
    scim_site,
    told,
    verify,
    wanted,
)
from tests.support.servers import databases


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


def count_differences(found: dict[str, Verified]) -> dict[str, tuple[int, int]]:
    return {table: (len(one.proof.differences), one.repaired) for table, one in found.items()}


def test_verify_finds_what_differs_and_repairs_it(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url)
        publish_all(config)
        server.change("PATCH", "bob", [{"op": "replace", "path": "name.givenName", "value": "Somebody"}])
        server.change("DELETE", "dan")
        assert count_differences(verify(engine, config, mend=True)) == {"usr": (2, 2), "grp": (0, 0)}
        publish_all(config)
        # Who is made again has another id, and whose manager that is differs now.
        assert count_differences(verify(engine, config, mend=True)) == {"usr": (1, 1), "grp": (0, 0)}
        publish_all(config)
        assert count_differences(verify(engine, config)) == {"usr": (0, 0), "grp": (0, 0)}
        assert told(server) == wanted(engine)


@pytest.mark.parametrize("style", ["row-back", "image", "field"])
@pytest.mark.parametrize("patch", [True, False], ids=["PATCH", "PUT"])
def test_an_empty_column_for_active_is_no_value_and_the_server_decides(engine: Engine, style: str, patch: bool) -> None:
    with judge(patch=patch) as server:
        scim_site(engine, style)
        mapping = deepcopy(MAPPING)
        mapping["tables"]["usr"]["delete"] = "disable"
        config = scim_config(engine, server.url, scim=mapping)

        def is_active() -> Any:
            assert count_differences(verify(engine, config)) == {"usr": (0, 0), "grp": (0, 0)}
            return server.users()["ada"].get("active")

        add = "INSERT INTO usr (idu, login, works) VALUES (1, 'ada', NULL)"
        for statement, active in (
            (add, None),
            ("UPDATE usr SET works = 0", False),
            ("UPDATE usr SET works = NULL", None),
            ("DELETE FROM usr", False),
            (add, None),
            ("UPDATE usr SET works = 1", True),
        ):
            run(engine, statement)
            publish_all(config)
            assert is_active() is active, statement
        assert not ends(engine)
        if not patch:
            return  # nobody can change it there as below
        disable = [{"op": "add", "path": "active", "value": False}]
        # A server may give it a value by itself; but one that differs from ours is a difference.
        run(engine, "UPDATE usr SET works = NULL")
        publish_all(config)
        server.change("PATCH", "ada", disable)
        assert is_active() is False
        run(engine, "UPDATE usr SET works = 1")
        publish_all(config)
        server.change("PATCH", "ada", disable)
        assert count_differences(verify(engine, config)) == {"usr": (1, 0), "grp": (0, 0)}


def test_a_reference_to_a_deleted_row_is_that_to_its_disabled_user(engine: Engine) -> None:
    """Tables may keep such references, where no foreign key is enforced."""
    with judge() as server:
        given(engine)
        mapping = deepcopy(MAPPING)
        mapping["tables"]["usr"]["delete"] = "disable"
        config = scim_config(engine, server.url, scim=mapping)
        publish_all(config)
        run(engine, "DELETE FROM usr WHERE idu = 1")
        publish_all(config)
        assert server.users()["ada"]["active"] is False
        assert count_differences(verify(engine, config)) == {"usr": (0, 0), "grp": (0, 0)}
        manager = f"{ENTERPRISE}:manager.value"
        server.change("PATCH", "bob", [{"op": "replace", "path": manager, "value": server.users()["dan"]["id"]}])
        assert count_differences(verify(engine, config)) == {"usr": (1, 0), "grp": (0, 0)}


@pytest.mark.parametrize("database", databases())
def test_verify_compares_members_and_other_values_of_child_tables(
    request: pytest.FixtureRequest, database: str
) -> None:
    engine: Engine = request.getfixturevalue("engine" if database == "sqlite" else database)
    with judge() as server:
        scim_site(engine)
        run(engine, *ALONE, "UPDATE usr SET boss = 4 WHERE idu = 3")
        run(engine, "INSERT INTO grp VALUES (2, 'board')", "INSERT INTO usr_grp VALUES (2, 3)")
        config = scim_config(engine, server.url)
        publish_all(config)
        found = verify(engine, config)
        assert count_differences(found) == {"usr": (0, 0), "grp": (0, 0)}
        assert not [note for one in found.values() for note in one.proof.notes]
        dan = server.users()["dan"]["id"]
        server.change("PATCH", "ada", [{"op": "replace", "path": "phoneNumbers", "value": [{"value": "999"}]}])
        server.change("PATCH", "board", [{"op": "add", "path": "members", "value": [{"value": dan}]}])
        server.change("PATCH", "staff", [{"op": "remove", "path": "members"}])
        found = verify(engine, config, mend=True)
        assert count_differences(found) == {"usr": (1, 1), "grp": (2, 2)}
        [phones] = found["usr"].proof.differences[0].values
        assert (phones.column, phones.source, phones.target) == ("usr_phone.phone", '["123"]', '["999"]')
        values = {value for one in found["grp"].proof.differences for value in one.values}
        assert {(value.source, value.target) for value in values} == {('["1", "2"]', None), ('["3"]', '["3", "4"]')}
        publish_all(config)
        assert count_differences(verify(engine, config)) == {"usr": (0, 0), "grp": (0, 0)}
        assert told(server) == wanted(engine)


def test_a_group_that_is_gone_when_it_is_read_is_missing_and_a_refusal_is_said(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url)
        publish_all(config)

        def meddle_with(status: str) -> None:
            answer = status, [("Content-Length", "0")], b""
            server.meddle = lambda method, path: answer if method == "GET" and "/Groups/" in path else None

        meddle_with("404 Not Found")
        [difference] = verify(engine, config)["grp"].proof.differences
        assert difference.kind == "missing"
        meddle_with("403 Forbidden")
        found = verify(engine, config, fails=True)
        assert found["usr"].proof.equal
        assert "does not list its resources: the receiver answered 403" in str(found["grp"].proof.problem)


def test_verify_compares_what_a_policy_renames_and_changes(engine: Engine) -> None:
    columns = {"login": "userName", "given": "name.givenName", "phones": "phoneNumbers.value"}
    steps = [
        {"do": "rename", "classes": ["usr"], "attributes": {"fname": "given", "usr_phone.phone": "phones"}},
        {"do": "text", "classes": ["usr"], "attributes": ["given"], "to": "upper"},
    ]
    with judge() as server:
        given(engine)
        mapping = {"tables": {"usr": {"columns": columns}}}
        config = scim_config(engine, server.url, scim=mapping, steps=steps)
        publish_all(config)
        assert server.users()["ada"]["name"]["givenName"] == "ADA"
        found = verify(engine, config)
        assert len(found["usr"].proof.differences) == 0
        # What no mapping names does not differ.
        assert found["grp"].proof.notes == ("The output maps nothing of it.",)
        server.change("PATCH", "ada", [{"op": "replace", "path": "phoneNumbers", "value": [{"value": "999"}]}])
        server.change("PATCH", "bob", [{"op": "replace", "path": "name.givenName", "value": "Bob"}])
        differing = verify(engine, config, mend=True)["usr"].proof.differences
        assert {value.column for one in differing for value in one.values} == {"given", "phones"}
        publish_all(config)
        assert len(verify(engine, config)["usr"].proof.differences) == 0


def test_an_object_with_a_very_long_key_is_found_and_compared(engine: Engine) -> None:
    run(
        engine,
        "CREATE TABLE person (code VARCHAR(400) NOT NULL PRIMARY KEY, login VARCHAR(40), boss VARCHAR(400) REFERENCES person)",
    )
    install(engine)
    track(engine, ["person"], TriggerOptions())
    ada, bob = "a" * 300, "b" * 300
    columns = {"login": "userName", "boss": MAPPING["tables"]["usr"]["columns"]["boss"]}
    with judge() as server:
        config = scim_config(engine, server.url, scim={"tables": {"person": {"columns": columns}}})
        run(engine, f"INSERT INTO person VALUES ('{bob}', 'bob', '{ada}')")
        publish_all(config)  # whose manager comes later
        run(
            engine,
            f"INSERT INTO person VALUES ('{ada}', 'ada', NULL)",
            f"INSERT INTO person VALUES ('{ada}c', 'c', '{bob}')",
        )
        publish_all(config)
        ids = {name: user["id"] for name, user in server.users().items()}
        assert {
            name: (user.get(ENTERPRISE) or {}).get("manager", {}).get("value") for name, user in server.users().items()
        } == {
            "ada": None,
            "bob": ids["ada"],
            "c": ids["bob"],
        }
        server.change("PATCH", "bob", [{"op": "replace", "path": "userName", "value": "rob"}])
        assert count_differences(verify(engine, config, mend=True)) == {"person": (1, 1)}
        publish_all(config)
        assert count_differences(verify(engine, config, mend=True)) == {"person": (0, 0)}
        assert {name: user["id"] for name, user in server.users().items()} == ids
        run(engine, f"DELETE FROM person WHERE code = '{ada}c'")
        publish_all(config)
        assert set(server.users()) == {"ada", "bob"}


def refresh(engine: Engine, server: Judge, folder: Path, *words: str, count: int = 1) -> str:
    """Ask for a full load by the command; the configuration has so many outputs."""
    lines = ["[source]", f'url = "{engine.url}"', "[publisher]", "allow_loopback = true"]
    for name in ["people", "others"][:count]:
        lines += ["[[output]]", f'name = "{name}"', 'sink = "scim"', f'url = "{server.url}"']
        lines += [f'authorization = "Bearer {TOKEN}"', "[output.scim.tables.usr.columns]", 'login = "userName"']
        lines += ['fname = "name.givenName"']
    file = folder / "eventlog.toml"
    file.write_text("\n".join(lines))
    done = CliRunner().invoke(main, ["refresh", *words, "--config", str(file)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_full_load_sends_only_what_differs(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mapping = {"tables": {"usr": {"columns": {"login": "userName", "fname": "name.givenName"}}}}
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url, name="people", scim=mapping)
        told = refresh(engine, server, tmp_path, "usr")
        assert (
            told
            == "usr: 0 rows wait to be published, of 4 rows compared with what the receiver has. 4 others are on the way.\n"
        )
        publish_all(config)
        assert refresh(engine, server, tmp_path, "usr", "grp") == (
            "usr: 0 rows wait to be published, of 4 rows compared with what the receiver has.\n"
            "grp: 0 rows wait to be published, of 0 rows compared with what the receiver has. The output maps nothing of it.\n"
        )
        server.change("PATCH", "bob", [{"op": "replace", "path": "name.givenName", "value": "Somebody"}])
        server.change("DELETE", "dan")
        track_nothing = ("UPDATE event_log SET status = 'S'", "DELETE FROM event_log")
        run(
            engine,
            "DELETE FROM usr_grp WHERE idu = 1",
            "DELETE FROM usr_phone",
            "UPDATE usr SET boss = NULL",
            "DELETE FROM usr WHERE idu = 1",
            *track_nothing,
        )
        output = refresh(engine, server, tmp_path, "usr", "--output", "people", "--json")
        assert json.loads(output) == [{"table": "usr", "rows": 3, "before": 0, "compared": 3, "note": ""}]
        publish_all(config)
        names = {name: user["name"]["givenName"] for name, user in server.users().items()}
        assert names == {"bob": "Bob", "cyd": "Cyd", "dan": "Dan"}
        # All of it where that is asked for, where some rows are, where others get them too, and where most of it differs.
        every = "usr: 3 rows wait to be published"
        assert refresh(engine, server, tmp_path, "usr", "--again") == f"{every}.\n"
        assert refresh(engine, server, tmp_path, "usr", "--where", "idu > 1") == f"{every}.\n"
        assert refresh(engine, server, tmp_path, "usr", count=2) == f"{every}.\n"
        publish_all(config)
        server.meddle = lambda _method, _path: ("403 Forbidden", [("Content-Length", "0")], b"")
        assert refresh(engine, server, tmp_path, "usr").startswith("usr: every row is sent. ")
        publish_all(config)
        server.meddle = lambda _method, _path: None
        monkeypatch.setattr("eventlog.verify.resending.MOST_ROWS", 1)
        server.change("DELETE", "dan")
        assert (
            refresh(engine, server, tmp_path, "usr")
            == f"usr: every row is sent. At least 1 row differs at people.\n{every}.\n"
        )
        publish_all(config)
        assert set(server.users()) == {"bob", "cyd", "dan"}


def test_the_page_sends_what_differs_too(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url, name="people")
        publish_all(config)
        server.change("PATCH", "bob", [{"op": "replace", "path": "name.givenName", "value": "Somebody"}])
        loading = Loading(engine, LogNames(), config, lambda: None)
        assert loading.begin((None, "usr"), "ann")
        until(lambda: (view := loading.view((None, "usr"))) is not None and not view.running, "it has ended")
        view = loading.view((None, "usr"))
        assert view is not None
        assert (view.state, view.rows, view.error) == ("ended", 1, "")
        publish_all(config)
        assert server.users()["bob"]["name"]["givenName"] == "Bob"


def test_a_full_load_that_was_broken_off_goes_on(engine: Engine, tmp_path: Path) -> None:
    with judge() as server:
        given(engine)
        publish_all(scim_config(engine, server.url, name="people"))
        [load] = loads(engine, LogNames(), ["usr"], None, None)
        work = Refresh(Log(engine, LogNames()), load, RefreshPace(chunk=3))
        next(work.steps(work.begin()))
        told = refresh(engine, server, tmp_path, "usr")
        assert told == "usr: 4 rows wait to be published, 3 of them before it was interrupted.\n"


SPELLED = {
    "sqlite": "TEXT COLLATE NOCASE",
    "postgresql": "citext",
    "mariadb": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "mysql": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
}


@pytest.mark.parametrize("database", databases())
@pytest.mark.parametrize("renames", [False, True], ids=["as it is", "behind a policy"])
def test_a_reference_that_is_spelled_otherwise_than_its_row_does_not_differ(
    request: pytest.FixtureRequest, database: str, renames: bool
) -> None:
    """Members and managers; some have none, and one is of another spelling of the same row."""
    engine: Engine = request.getfixturevalue("engine" if database == "sqlite" else database)
    kind = SPELLED[database]
    if database == "postgresql":
        run(engine, "CREATE EXTENSION IF NOT EXISTS citext")
    run(
        engine,
        f"CREATE TABLE usr (k {kind} NOT NULL PRIMARY KEY, login VARCHAR(20), boss {kind}, FOREIGN KEY (boss) REFERENCES usr (k))",
        "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(20))",
        f"CREATE TABLE usr_grp (idg INTEGER NOT NULL, k {kind} NOT NULL, PRIMARY KEY (idg, k),"
        " FOREIGN KEY (idg) REFERENCES grp (idg), FOREIGN KEY (k) REFERENCES usr (k))",
    )
    install(engine)
    track(engine, ["usr"], TriggerOptions())
    track(engine, ["grp"], TriggerOptions(children=("usr_grp",)))
    run(
        engine,
        "INSERT INTO usr VALUES ('Ada', 'ada', NULL)",
        "INSERT INTO usr VALUES ('Bob', 'bob', 'ADA')",
        "INSERT INTO usr VALUES ('Cyd', 'cyd', 'Ada')",
        "INSERT INTO grp VALUES (1, 'staff')",
        "INSERT INTO grp VALUES (2, 'empty')",
        "INSERT INTO usr_grp VALUES (1, 'aDa')",
        "INSERT INTO usr_grp VALUES (1, 'BOB')",
    )
    chief = "chief" if renames else "boss"
    steps: list[dict[str, Any]] = (
        [{"do": "rename", "classes": ["usr"], "attributes": {"boss": chief}}] if renames else []
    )
    manager = MAPPING["tables"]["usr"]["columns"]["boss"]
    mapping = {
        "usr": {"columns": {"login": "userName", chief: manager}},
        "grp": {"type": "Group", "columns": {"name": "displayName", "usr_grp.k": "members"}},
    }
    with judge() as server:
        config = scim_config(engine, server.url, scim={"tables": mapping}, steps=steps)
        publish_all(config)
        assert server.members("staff") == {"ada", "bob"}
        assert count_differences(verify(engine, config)) == {"usr": (0, 0), "grp": (0, 0)}
        server.change("PATCH", "bob", [{"op": "remove", "path": manager.rpartition(".")[0]}])
        server.change("PATCH", "staff", [{"op": "remove", "path": "members"}])
        assert count_differences(verify(engine, config, mend=True)) == {"usr": (1, 1), "grp": (1, 1)}
        publish_all(config)
        assert count_differences(verify(engine, config)) == {"usr": (0, 0), "grp": (0, 0)}
