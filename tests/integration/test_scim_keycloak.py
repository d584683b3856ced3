"""A publisher and Keycloak: its users and groups are those of the tables, whoever is killed meanwhile."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError
from tests.integration.publishing import Process, publish_all
from tests.support.scim import ends, run, scim_config, scim_site, verify
from tests.support.servers_scim import CLIENT, SECRET, Keycloak

MAPPING: dict[str, Any] = {
    "tables": {
        "usr": {
            "columns": {
                "login": "userName",
                "fname": "name.givenName",
                "lname": "name.familyName",
                "mail": 'emails[type eq "work"].value',
                "works": "active",
            },
        },
        "grp": {"type": "Group", "columns": {"name": "displayName", "usr_grp.idu": "members"}},
    }
}
pytestmark = pytest.mark.xdist_group("keycloak")  # which takes a minute to start, and 700 MB

KILLS: Final = 50
USERS: Final = 10_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    scim_site(made)
    yield made
    made.dispose()


def config_of(engine: Engine, keycloak: Keycloak, publisher: Mapping[str, Any] | None = None, **more: Any) -> Config:
    output: dict[str, Any] = {"authorization": None, "scim": MAPPING, **login_of(keycloak), **more}
    return scim_config(engine, keycloak.url, {"lease": 1.0, **(publisher or {})}, **{"total_timeout": 10.0, **output})


def login_of(keycloak: Keycloak) -> dict[str, Any]:
    return {"oauth_url": keycloak.token_url, "oauth_client_id": CLIENT, "oauth_client_secret": SECRET}


def publish(engine: Engine, keycloak: Keycloak, **more: Any) -> None:
    for _ in range(60):
        with suppress(EventlogError):
            publish_all(config_of(engine, keycloak, **more))
            return
        time.sleep(0.5)
    publish_all(config_of(engine, keycloak, **more))


def wanted(engine: Engine) -> tuple[dict[str, tuple[Any, ...]], dict[str, set[str]]]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT login, fname, lname, mail, works FROM usr")).all()
        members = connection.execute(
            text("SELECT name, login FROM grp LEFT JOIN usr_grp USING (idg) LEFT JOIN usr USING (idu)")
        ).all()
    groups: dict[str, set[str]] = {}
    for name, login in members:
        groups.setdefault(name, set()).update([login] if login else [])
    return {row[0]: (*row[1:4], bool(row[4])) for row in rows}, groups


def told(keycloak: Keycloak) -> tuple[dict[str, tuple[Any, ...]], dict[str, set[str]]]:
    users = keycloak.resources("/Users")
    names = {user["id"]: user["userName"] for user in users}
    assert len(set(names.values())) == len(users)
    found: dict[str, tuple[Any, ...]] = {}
    for user in users:
        name: Mapping[str, Any] = user.get("name") or {}
        mail = next((one.get("value") for one in user.get("emails") or ()), None)
        found[user["userName"]] = (name.get("givenName"), name.get("familyName"), mail, user.get("active"))
    groups: dict[str, set[str]] = {}
    for group in keycloak.resources("/Groups"):
        whole = keycloak.ask("GET", f"/Groups/{group['id']}?attributes=members")
        groups[group["displayName"]] = {names[member["value"]] for member in whole.get("members") or ()}
    return found, groups


def fill(engine: Engine, count: int) -> None:
    users = [
        f"INSERT INTO usr VALUES ({n}, 'user{n}', 'Given{n}', 'Family{n}', 'user{n}@example.com', NULL, {n}, NULL, 1)"
        for n in range(1, count + 1)
    ]
    groups = [f"INSERT INTO grp VALUES ({n}, 'group{n}')" for n in range(1, 4)]
    members = [f"INSERT INTO usr_grp VALUES ({n % 3 + 1}, {n})" for n in range(1, count + 1)]
    run(engine, *users, *groups, *members)


def test_users_and_groups_are_those_of_the_tables(engine: Engine, keycloak: Keycloak) -> None:
    fill(engine, 10)
    publish(engine, keycloak)
    assert told(keycloak) == wanted(engine)
    run(
        engine,
        "UPDATE usr SET fname = 'Anna', mail = 'anna@example.com' WHERE idu = 1",
        "UPDATE usr SET works = 0 WHERE idu = 2",
        "UPDATE usr SET lname = 'New' WHERE idu = 3",
        "DELETE FROM usr_grp WHERE idu IN (4, 5)",
        "INSERT INTO usr_grp VALUES (1, 4), (2, 2)",
        "DELETE FROM usr WHERE idu = 5",
        "UPDATE grp SET name = 'renamed' WHERE idg = 2",
    )
    publish(engine, keycloak)
    assert told(keycloak) == wanted(engine)
    run(engine, "DELETE FROM usr_grp WHERE idg = 3", "DELETE FROM grp WHERE idg = 3")
    publish(engine, keycloak)
    assert told(keycloak) == wanted(engine)
    assert not [end for end in ends(engine).values() if end[0] == "E"]
    found = verify(engine, config_of(engine, keycloak))
    assert {table: len(one.proof.differences) for table, one in found.items()} == {"usr": 0, "grp": 0}


def test_a_deleted_row_disables_its_user_where_that_is_chosen(engine: Engine, keycloak: Keycloak) -> None:
    users = MAPPING["tables"]["usr"] | {"delete": "disable"}
    mapping = {"tables": {"usr": users}}
    fill(engine, 2)
    publish(engine, keycloak, scim=mapping)
    run(engine, "DELETE FROM usr_grp WHERE idu = 1", "DELETE FROM usr WHERE idu = 1")
    publish(engine, keycloak, scim=mapping)
    assert {user["userName"]: user["active"] for user in keycloak.resources("/Users")} == {
        "user1": False,
        "user2": True,
    }
    # No value is "disabled" there, and no difference.
    run(
        engine,
        "UPDATE usr SET works = NULL WHERE idu = 2",
        "INSERT INTO usr SELECT 3, 'user3', fname, lname, "
        "'user3@example.com', room, number, boss, NULL FROM usr WHERE idu = 2",
    )
    publish(engine, keycloak, scim=mapping)
    assert {user["userName"]: user["active"] for user in keycloak.resources("/Users")} == {
        "user1": False,
        "user2": False,
        "user3": False,
    }
    assert not verify(engine, config_of(engine, keycloak, scim=mapping))["usr"].proof.differences


def test_verify_finds_what_somebody_changed_there_and_repairs_it(engine: Engine, keycloak: Keycloak) -> None:
    fill(engine, 6)
    publish(engine, keycloak)
    ids = {user["userName"]: user["id"] for user in keycloak.resources("/Users")}
    group = next(one["id"] for one in keycloak.resources("/Groups") if one["displayName"] == "group2")
    keycloak.ask("DELETE", f"/Users/{ids['user1']}")
    keycloak.change(f"/Users/{ids['user2']}", {"op": "replace", "path": "name.givenName", "value": "Somebody"})
    keycloak.change(f"/Groups/{group}", {"op": "add", "path": "members", "value": [{"value": ids["user3"]}]})
    found = verify(engine, config_of(engine, keycloak), mend=True)
    assert {table: len(one.proof.differences) for table, one in found.items()} == {"usr": 2, "grp": 1}
    publish(engine, keycloak)
    # Who is made again has another id, and is no member of the group yet.
    verify(engine, config_of(engine, keycloak), mend=True)
    publish(engine, keycloak)
    assert told(keycloak) == wanted(engine)


def test_who_is_there_already_is_adopted_and_a_conflict_has_the_servers_words(
    engine: Engine, keycloak: Keycloak
) -> None:
    schemas = ["urn:ietf:params:scim:schemas:core:2.0:User"]
    person = {"schemas": schemas, "name": {"givenName": "Old", "familyName": "Old"}}
    before, _ = (
        keycloak.ask("POST", "/Users", person | {"userName": name, "emails": [{"type": "work", "value": mail}]})
        for name, mail in (("user1", "old@example.com"), ("other", "user2@example.com"))
    )
    fill(engine, 2)
    # Of a mail that somebody else has it says 500, and that in SCIM's words.
    for _ in range(100):
        publish_all(
            config_of(engine, keycloak, publisher={"on_retry": "object", "max_attempts": 2, "retry_longest": 0.1})
        )
        if any(letter == "E" for letter, _ in ends(engine).values()):
            break
        time.sleep(0.1)
    users = {user["userName"]: user for user in keycloak.resources("/Users")}
    assert users["user1"]["id"] == before["id"]
    assert users["user1"]["name"]["givenName"] == "Given1"
    errors = [note or "" for letter, note in ends(engine).values() if letter == "E"]
    assert errors
    assert all(note.startswith("Given up after 2 attempts. the receiver answered 500: ") for note in errors)


@pytest.mark.long
def test_nobody_is_there_twice_after_kills_of_the_server_and_of_publishers(
    engine: Engine, keycloak: Keycloak, tmp_path: Path
) -> None:
    fill(engine, 300)
    output = {"sink": "scim", "url": keycloak.url, "connections": 4, "scim": MAPPING, **login_of(keycloak)}
    file = tmp_path / "eventlog.toml"
    file.write_text("\n".join(["[[output]]", *(f"{key} = {as_toml(value)}" for key, value in output.items())]))
    chance = random.Random(70)  # the same each time
    at_work = 0
    for number in range(KILLS):
        with Process(engine, tmp_path / "publisher", "--config", str(file), out=False, retry_first=0.1):
            run(engine, *changes(chance, number))
            if number == KILLS // 2:
                keycloak.kill()
                keycloak.start()
            time.sleep(chance.uniform(0.5, 2.5))
            at_work += waiting(engine) > 0
    publish(engine, keycloak)
    assert at_work > KILLS // 2
    assert told(keycloak) == wanted(engine)
    assert not [end for end in ends(engine).values() if end[0] == "E"]


@pytest.mark.long
def test_many_users_and_their_groups_are_those_of_the_tables(engine: Engine, keycloak: Keycloak) -> None:
    fill(engine, USERS)
    seconds = [time.monotonic()]
    publish(engine, keycloak)
    seconds.append(time.monotonic())
    assert told(keycloak) == wanted(engine)
    run(
        engine,
        f"UPDATE usr SET lname = 'New' WHERE idu <= {USERS // 20}",
        f"DELETE FROM usr_grp WHERE idu > {USERS - USERS // 20}",
        f"DELETE FROM usr WHERE idu > {USERS - USERS // 20}",
    )
    publish(engine, keycloak)
    seconds.append(time.monotonic())
    found = verify(engine, config_of(engine, keycloak))
    seconds.append(time.monotonic())
    assert {table: len(one.proof.differences) for table, one in found.items()} == {"usr": 0, "grp": 0}
    assert told(keycloak) == wanted(engine)
    made, changed, verified = (round(after - before) for before, after in pairwise(seconds))
    print(f"{USERS} users and groups of them in {made} s, a tenth changed in {changed} s, verified in {verified} s")  # noqa: T201 - the figure


def changes(chance: random.Random, number: int) -> Iterator[str]:
    """Write some changes of users and of groups, another one's each time."""
    new = 1000 + number
    yield f"INSERT INTO usr VALUES ({new}, 'user{new}', 'G', 'F', 'user{new}@example.com', NULL, {new}, NULL, 1)"
    yield f"INSERT INTO usr_grp VALUES ({new % 3 + 1}, {new})"
    for user in chance.sample(range(1, 301), 15):
        yield f"UPDATE usr SET lname = 'Family{number}' WHERE idu = {user}"
    for user in chance.sample(range(1, 301), 3):
        yield f"DELETE FROM usr_grp WHERE idu = {user}"
        yield f"INSERT INTO usr_grp VALUES ({chance.randint(1, 3)}, {user})"
    if number % 2:
        yield f"DELETE FROM usr_grp WHERE idu = {new - 1}"
        yield f"DELETE FROM usr WHERE idu = {new - 1}"


def waiting(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM event_log WHERE status = 'N'")).scalar_one())


def as_toml(value: Any) -> str:
    """Write a value of TOML in a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {as_toml(part)}" for key, part in value.items()) + " }"
    return json.dumps(value)
