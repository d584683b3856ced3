"""A publisher and scim2-server, another SCIM than ours: the server has what the tables have, whatever fails."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.care.rows import EVERYTHING, PROCESSED, Choice, requeue
from eventlog.cli.main import main
from eventlog.core.errors import EventlogError
from eventlog.core.model import Document, Reason
from eventlog.core.plugins import SinkOrder
from eventlog.core.seams import Sink
from eventlog.explain.rows import explain
from eventlog.publisher.journal import Journal
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import RefreshPace, loads
from eventlog.sinks.scim.carry import ScimCarrier
from eventlog.sinks.scim.paths import CORE_USER
from eventlog.sinks.scim.plugin import SCIM, ScimOutput
from eventlog.sinks.scim.requests import ScimRequest, Unique, encode
from eventlog.sinks.scim.settings import ScimSettings
from eventlog.sinks.scim.write import ScimFormat
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.testing import SinkSuite, SinkTarget
from eventlog.tracked.options import TriggerOptions
from eventlog.verify.verifying import Verified
from tests.integration.publishing import publish_all
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
from tests.support.sinks import KilledError

PEOPLE = (
    "INSERT INTO usr VALUES (1, 'ada', 'Ada', 'Love', 'ada@example.com', 'R1', 7, NULL, 1)",
    "INSERT INTO usr VALUES (2, 'bob', 'Bob', 'Bee', NULL, NULL, 8, 1, 1)",
    "INSERT INTO usr VALUES (3, 'cyd', 'Cyd', 'Cee', 'c@example.com', 'R2', 9, 4, 0)",
    "INSERT INTO usr VALUES (4, 'dan', 'Dan', NULL, 'd@example.com', 'R2', 9, 3, 0)",
    "INSERT INTO usr_phone VALUES (1, '123')",
    "INSERT INTO grp VALUES (1, 'staff')",
    "INSERT INTO usr_grp VALUES (1, 1)",
    "INSERT INTO usr_grp VALUES (1, 2)",
)
ALONE = [statement.replace(", 4, 0)", ", NULL, 0)").replace(", 3, 0)", ", NULL, 0)") for statement in PEOPLE]
"""The same without managers that come later, which a database may refuse."""
CHANGES = (
    "UPDATE usr SET mail = 'bob@example.com', room = 'R9' WHERE idu = 2",
    "UPDATE usr SET mail = NULL, works = 0 WHERE idu = 1",
    "UPDATE usr SET login = 'cydney', boss = 1 WHERE idu = 3",
    "DELETE FROM usr_grp WHERE idu = 1",
    "INSERT INTO usr_grp VALUES (1, 4)",
    "INSERT INTO usr_phone VALUES (1, '456')",
    "DELETE FROM usr_phone WHERE phone = '123'",
)

FAILURE = b'{"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"], "detail": "no such luck", "status": "500"}'
REFUSED = ("400 Bad Request", [("Content-Length", "0")], b"")
FAILED = ("500 Internal Server Error", [("Content-Length", str(len(FAILURE)))], FAILURE)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


def errors(engine: Engine) -> list[str | None]:
    return [note for letter, note in ends(engine).values() if letter == "E"]


def given(engine: Engine, style: str = "row-back") -> None:
    scim_site(engine, style)
    run(engine, *PEOPLE)


@pytest.mark.parametrize("style", ["row-back", "image", "field", "field-back"])
def test_a_server_has_what_the_tables_have(engine: Engine, style: str) -> None:
    with judge() as server:
        given(engine, style)
        config = scim_config(engine, server.url)
        publish_all(config)
        assert told(server) == wanted(engine)
        run(engine, *CHANGES)
        publish_all(config)
        assert told(server) == wanted(engine)
        assert not ends(engine)
        run(
            engine,
            "DELETE FROM usr_grp",
            "UPDATE usr SET boss = NULL",
            "DELETE FROM usr WHERE idu = 2",
            "DELETE FROM grp",
        )
        publish_all(config)
        assert told(server) == wanted(engine)
        # Nothing is looked for whose id is known: one request an object, and those that a server needs.
        assert {path for method, path in server.requests if method == "GET" and "filter" in path} == {
            "/v2/Groups?filter=displayName%20eq%20%22staff%22&excludedAttributes=members"
        }


@pytest.mark.parametrize("database", [name for name in databases() if name != "sqlite"])
def test_a_log_elsewhere_knows_what_the_server_calls_objects(request: pytest.FixtureRequest, database: str) -> None:
    """What is kept of objects is written, found, waited for, renamed and forgotten there too."""
    engine: Engine = request.getfixturevalue(database)
    posts: list[str] = []

    def refuse_dan(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Users"):
            posts.append(path)
            if len(posts) == 2:  # ada, who gets a phone, and cyd, who gets a manager, come after dan
                return "400 Bad Request", [("Content-Length", "0")], b""
        return None

    with judge() as server:
        server.meddle = refuse_dan
        scim_site(engine)
        run(engine, *ALONE)
        run(engine, "UPDATE usr SET boss = 4 WHERE idu = 3")
        publish_all(scim_config(engine, server.url, name="people", connections=1))
        assert len(errors(engine)) == 1
        assert set(server.users()) == {"ada", "bob", "cyd"}
        # Another publisher, under another name: cyd waits for dan still.
        run(engine, "UPDATE usr SET fname = 'Daniel' WHERE idu = 4")
        publish_all(scim_config(engine, server.url, name="staff", former_names=["people"]))
        assert told(server) == wanted(engine)
        # The id of one is lost, and another one has a name that the server knows already.
        run(engine, "DELETE FROM event_log_association WHERE object LIKE '%usr idu=2'", *CHANGES)
        run(engine, "INSERT INTO usr VALUES (6, 'DAN', NULL, NULL, NULL, NULL, NULL, NULL, 1)")
        publish_all(scim_config(engine, server.url, name="staff"))
        assert any(
            str(note).startswith("the receiver has a User with this userName already") for note in errors(engine)
        )
        run(engine, "DELETE FROM usr WHERE idu = 6", "DELETE FROM usr_grp", "DELETE FROM grp")
        publish_all(scim_config(engine, server.url, name="staff"))
        assert told(server) == wanted(engine)
        with engine.connect() as connection:
            kept = connection.execute(text("SELECT output, object FROM event_log_association")).all()
        names = {(output, name.rpartition(".")[2]) for output, name in kept}
        assert names == {("staff", f"usr idu={number}") for number in (1, 2, 3, 4)}


@pytest.mark.parametrize("lacks", ["patch", "filter", "etag"])
def test_a_server_that_can_do_less_has_it_too(engine: Engine, lacks: str) -> None:
    with judge(**{lacks: False}) as server:
        given(engine)
        config = scim_config(engine, server.url)
        publish_all(config)
        run(engine, *CHANGES)
        publish_all(config)
        assert told(server) == wanted(engine)
        if lacks == "patch":
            assert server.asked("PATCH") == 0 < server.asked("PUT")


def test_a_row_that_is_deleted_is_disabled_where_that_is_chosen_and_comes_back(engine: Engine) -> None:
    with judge() as server:
        scim_site(engine)
        columns = {"login": "userName", "fname": "name.givenName"}
        mapping = {"tables": {"usr": {"columns": columns, "delete": "disable"}}}
        config = scim_config(engine, server.url, scim=mapping)
        run(engine, PEOPLE[0])
        publish_all(config)
        run(engine, "DELETE FROM usr")
        publish_all(config)
        assert server.users()["ada"]["active"] is False
        run(engine, PEOPLE[0].replace("'Ada'", "'Adele'"))
        publish_all(config)
        assert server.users()["ada"]["active"] is True
        assert server.users()["ada"]["name"]["givenName"] == "Adele"


def test_what_a_server_refuses_ends_as_an_error_with_its_words(engine: Engine) -> None:
    with judge() as server:
        given(engine)

        def meddle(method: str, path: str) -> Any:
            if method == "POST" and path.endswith("/Groups"):
                body = b'{"scimType": "invalidValue", "detail": "no group is called staff", "status": "400"}'
                return "400 Bad Request", [("Content-Length", str(len(body)))], body
            return None

        server.meddle = meddle
        publish_all(scim_config(engine, server.url))
        [(letter, note)] = set(ends(engine).values())
        assert (letter, note) == ("E", "the receiver answered 400 invalidValue: no group is called staff")
        assert len(server.users()) == 4


def test_rows_that_are_requeued_make_nobody_twice(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        server.meddle = lambda method, path: REFUSED if method == "POST" and path.endswith("/Groups") else None
        config = scim_config(engine, server.url)
        publish_all(config)
        assert errors(engine)
        before = {name: user["id"] for name, user in server.users().items()}
        server.meddle = lambda _method, _path: None
        log = Log(engine, LogNames())
        assert requeue(log, [EVERYTHING], Choice(statuses=PROCESSED)) > 4
        publish_all(config)
        assert told(server) == wanted(engine)
        assert {name: user["id"] for name, user in server.users().items()} == before
        assert not ends(engine)


def test_what_a_server_fails_at_for_one_object_is_tried_again_and_ends_as_an_error(engine: Engine) -> None:
    failed: list[str] = []
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url, {"on_retry": "object", "max_attempts": 3, "retry_longest": 0.1})
        publish_all(config)
        bob = f"/Users/{server.users()['bob']['id']}"

        def meddle(method: str, path: str) -> Any:
            if method == "PATCH" and path.endswith(bob):
                failed.append(path)
                return FAILED
            return None

        server.meddle = meddle
        run(engine, "UPDATE usr SET fname = 'Robert' WHERE idu = 2", "UPDATE usr SET fname = 'Anna' WHERE idu = 1")
        publish_all(config)
        assert server.users()["ada"]["name"]["givenName"] == "Anna"
        for _ in range(100):
            if errors(engine):
                break
            publish_all(config)
            time.sleep(0.05)
        assert errors(engine) == ["Given up after 3 attempts. the receiver answered 500: no such luck"]
        assert len(failed) == 3


def test_nothing_of_a_transaction_overtakes_what_a_server_fails_at() -> None:
    mapping = msgspec.convert({"tables": {"usr": {"columns": {"login": "userName"}}}}, ScimSettings)
    with judge() as server:
        output = ScimOutput(url=server.url, authorization=f"Bearer {TOKEN}", scim=mapping)
        requests = [
            ScimRequest(
                method="POST",
                path="/Users",
                object=name,
                unique=Unique("userName", (name,)),
                mapping="usr",
                body={"schemas": [CORE_USER], "userName": name},
            )
            for name in ("ada", "bob", "cyd")
        ]
        body = b"\n".join(map(encode, requests))
        document = Document(id="1", body=body, covers={str(n): ((n,),) for n in (1, 2, 3)})
        server.meddle = lambda method, _: FAILED if method == "POST" and server.users() else None
        with closing(SCIM.build(SinkOrder(output=output, format=ScimFormat(mapping)))) as sink:
            outcomes = sink.commit("plan", [document])
        assert [(outcome.position, outcome.reason) for outcome in outcomes] == [
            ((2,), Reason.RETRY),
            ((3,), Reason.HELD),
        ]
        assert set(server.users()) == {"ada"}


def test_who_is_there_already_is_adopted_and_told_all(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        publish_all(scim_config(engine, server.url))
        before = {name: user["id"] for name, user in server.users().items()}
        run(engine, "DELETE FROM event_log_association", "UPDATE usr SET fname = 'Anna' WHERE idu = 1")
        # As after a restore from before the first run: everything is told again.
        run(engine, "UPDATE event_log SET status = 'N'")
        publish_all(scim_config(engine, server.url))
        assert told(server) == wanted(engine)
        assert {name: user["id"] for name, user in server.users().items()} == before


def test_the_account_of_another_object_is_never_taken(engine: Engine) -> None:
    with judge() as server:
        scim_site(engine)
        run(engine, PEOPLE[0], "INSERT INTO usr VALUES (2, 'ADA', 'Other', NULL, NULL, NULL, NULL, NULL, 1)")
        publish_all(scim_config(engine, server.url, connections=1))
        [(letter, note)] = ends(engine).values()
        assert letter == "E"
        assert note == "the receiver has a User with this userName already: that of usr idu=1"
        assert server.users()["ada"]["name"]["givenName"] == "Ada"


def test_what_somebody_has_deleted_at_the_server_is_made_again_or_gone(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url)
        publish_all(config)
        for name in ("bob", "dan"):
            server.change("DELETE", name)
        run(engine, "UPDATE usr SET fname = 'Robert' WHERE idu = 2", "UPDATE usr SET boss = NULL WHERE idu = 3")
        run(engine, "DELETE FROM usr WHERE idu = 4")
        publish_all(config)
        assert told(server)[0] == wanted(engine)[0]
        assert not errors(engine)


def test_a_server_that_asks_for_a_pause_gets_it_and_then_everything(engine: Engine) -> None:
    asked: list[str] = []
    with judge() as server:
        given(engine)

        def meddle(method: str, path: str) -> Any:
            asked.append(path)
            if len(asked) in (2, 5):
                return "429 Too Many Requests", [("Retry-After", "1"), ("Content-Length", "0")], b""
            if len(asked) == 9:
                return "503 Service Unavailable", [("Content-Length", "0")], b""
            return None

        server.meddle = meddle
        config = scim_config(engine, server.url)
        for _ in range(20):
            with suppress(EventlogError):
                publish_all(config)
                break
        assert told(server) == wanted(engine)
        assert not errors(engine)


@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_there_twice_whenever_a_publisher_dies(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)  # the same each time
    plain_carry, plain_done = ScimCarrier.carry, Journal.done

    def die() -> None:
        if chance.random() < 0.35:
            raise KilledError

    def carry(self: ScimCarrier, *given: Any, **named: Any) -> Any:
        die()
        answer = plain_carry(self, *given, **named)
        die()
        return answer

    def done(self: Journal, *given: Any) -> Any:
        die()
        return plain_done(self, *given)

    with judge() as server:
        given(engine, ["row-back", "image", "field"][seed])
        monkeypatch.setattr(ScimCarrier, "carry", carry)
        monkeypatch.setattr(Journal, "done", done)
        deaths = 0
        for statements in ((), CHANGES):
            run(engine, *statements)
            for _ in range(60):
                try:
                    publish_all(scim_config(engine, server.url, {"lease": 1.0}))
                    break
                except KilledError:
                    deaths += 1
                    run(engine, "DELETE FROM event_log_mark WHERE name = 'lock'")
            assert told(server) == wanted(engine)
        assert deaths > 3
        assert not errors(engine)


def test_an_association_is_written_with_the_answer_and_goes_with_the_object(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        config = scim_config(engine, server.url, name="people")
        publish_all(config)
        with engine.connect() as connection:
            rows = connection.execute(text("SELECT object, association FROM event_log_association")).all()
            kept = {str(name): str(known) for name, known in rows}
        ids = {
            f"usr idu={number}": server.users()[name]["id"]
            for number, name in enumerate(("ada", "bob", "cyd", "dan"), 1)
        }
        assert kept == ids | {"grp idg=1": server.groups()["staff"]["id"]}
        run(engine, "DELETE FROM usr_grp", "DELETE FROM grp")
        # Under another name it goes on as the same.
        publish_all(scim_config(engine, server.url, name="staff", former_names=["people"]))
        with engine.connect() as connection:
            left = connection.execute(text("SELECT output, object FROM event_log_association")).all()
        assert {tuple(row) for row in left} == {("staff", name) for name in ids}
        assert not server.groups()


class TestScimSink(SinkSuite):
    @pytest.fixture
    def target(self) -> Iterator[SinkTarget]:
        with judge() as server, ExitStack() as stack:
            mapping = msgspec.convert({"tables": {"usr": {"columns": {"login": "userName"}}}}, ScimSettings)
            output = ScimOutput(url=server.url, authorization=f"Bearer {TOKEN}", connections=2, scim=mapping)

            def make() -> Sink:
                order = SinkOrder(output=output, format=ScimFormat(mapping))
                return stack.enter_context(closing(SCIM.build(order)))

            def document(number: int) -> Document:
                name = f"{number:020d}"
                body = {"schemas": [CORE_USER], "userName": name}
                request = ScimRequest(
                    method="POST",
                    path="/Users",
                    object=name,
                    unique=Unique("userName", (name,)),
                    mapping="usr",
                    body=body,
                )
                return Document(id=name, body=encode(request), covers={str(number): ((number,),)})

            def ids() -> list[str]:
                return sorted(server.users())

            yield SinkTarget(make=make, ids=ids, document=document)


def test_members_of_a_large_group_are_told_in_pieces(engine: Engine) -> None:
    with judge() as server:
        scim_site(engine)
        numbers = range(1, 251)
        run(engine, *(f"INSERT INTO usr (idu, login) VALUES ({number}, 'user{number}')" for number in numbers))
        run(engine, "INSERT INTO grp VALUES (1, 'all')")
        run(engine, *(f"INSERT INTO usr_grp VALUES (1, {number})" for number in numbers))
        publish_all(scim_config(engine, server.url))
        assert server.members("all") == {f"user{number}" for number in numbers}
        assert server.asked("PATCH") >= 3
        run(engine, "DELETE FROM usr_grp WHERE idu > 20")
        publish_all(scim_config(engine, server.url))
        assert server.members("all") == {f"user{number}" for number in range(1, 21)}


def test_explain_shows_the_request(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        explained = explain(engine, LogNames(), scim_config(engine, server.url, name="people"), 1)
    [sent] = explained.sent
    assert (sent.output, sent.note) == ("people", None)
    assert sent.text.startswith("POST /Users\n{")
    assert '"givenName": "Ada"' in sent.text


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


def test_a_full_load_that_was_broken_off_goes_on(engine: Engine, tmp_path: Path) -> None:
    with judge() as server:
        given(engine)
        publish_all(scim_config(engine, server.url, name="people"))
        [load] = loads(engine, LogNames(), ["usr"], None, None)
        work = Refresh(Log(engine, LogNames()), load, RefreshPace(chunk=3))
        next(work.steps(work.begin()))
        told = refresh(engine, server, tmp_path, "usr")
        assert told == "usr: 4 rows wait to be published, 3 of them before it was interrupted.\n"
