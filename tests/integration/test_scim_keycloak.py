"""A publisher and Keycloak: its users and groups are those of the tables, whoever is killed meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError
from eventlog.publisher.journal import Journal
from eventlog.sinks.scim.carry import ScimCarrier
from tests.integration.publishing import publish_all
from tests.support.scim import ends, run, scim_config, scim_site
from tests.support.servers_scim import CLIENT, SECRET, Keycloak
from tests.support.sinks import KilledError

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
MANY = 300


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    scim_site(made)
    yield made
    made.dispose()


def config_of(engine: Engine, keycloak: Keycloak, publisher: Mapping[str, Any] | None = None, **more: Any) -> Config:
    login = {"oauth_url": keycloak.token_url, "oauth_client_id": CLIENT, "oauth_client_secret": SECRET}
    return scim_config(
        engine, keycloak.url, {"lease": 1.0, **(publisher or {})}, authorization=None, scim=MAPPING, **login, **more
    )


def publish(engine: Engine, keycloak: Keycloak) -> None:
    for _ in range(60):
        with suppress(EventlogError):
            publish_all(config_of(engine, keycloak))
            return
        time.sleep(0.5)
    publish_all(config_of(engine, keycloak))


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
    engine: Engine, keycloak: Keycloak, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(engine, MANY)
    plain_carry, plain_done = ScimCarrier.carry, Journal.done
    counted = {"carry": 0, "done": 0, "deaths": 0}

    def carry(self: ScimCarrier, *given: Any, **named: Any) -> Any:
        counted["carry"] += 1
        answer = plain_carry(self, *given, **named)
        if counted["carry"] % 17 == 0:
            raise KilledError
        return answer

    def done(self: Journal, *given: Any) -> Any:
        counted["done"] += 1
        if counted["done"] % 3 == 0:
            raise KilledError
        return plain_done(self, *given)

    monkeypatch.setattr(ScimCarrier, "carry", carry)
    monkeypatch.setattr(Journal, "done", done)

    def kill_the_server() -> None:
        time.sleep(3)
        keycloak.kill()
        keycloak.start()

    killer = Thread(target=kill_the_server)
    killer.start()
    for _ in range(2000):
        try:
            publish_all(config_of(engine, keycloak))
            break
        except KilledError:
            counted["deaths"] += 1
            run(engine, "DELETE FROM event_log_mark WHERE name = 'lock'")
        except EventlogError:
            time.sleep(0.5)
    killer.join()
    publish(engine, keycloak)
    assert counted["deaths"] > 10
    assert told(keycloak) == wanted(engine)
