"""A publisher and scim2-server, another SCIM than ours: the server has what the tables have, whatever fails."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from ssl import CERT_REQUIRED, PROTOCOL_TLS_SERVER, SSLContext
from typing import Any

import msgspec
import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.care.rows import EVERYTHING, PROCESSED, Choice, requeue
from eventlog.core.errors import EventlogError
from eventlog.core.model import Document, Reason
from eventlog.core.plugins import SinkOrder
from eventlog.core.seams import Sink
from eventlog.explain.rows import explain
from eventlog.publisher.journal import Journal
from eventlog.sinks.scim.carry import ScimCarrier
from eventlog.sinks.scim.paths import CORE_USER
from eventlog.sinks.scim.plugin import SCIM, ScimOutput
from eventlog.sinks.scim.requests import ScimRequest, Unique, encode
from eventlog.sinks.scim.settings import ScimSettings
from eventlog.sinks.scim.write import ScimFormat
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.testing import SinkSuite, SinkTarget
from tests.integration.publishing import publish_all
from tests.integration.scim_people import ALONE, PEOPLE, given
from tests.kafka.authority import Authority
from tests.support.scim import (
    TOKEN,
    ends,
    judge,
    run,
    scim_config,
    scim_site,
    told,
    wanted,
)
from tests.support.servers import databases
from tests.support.sinks import KilledError

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
    lacking: dict[str, Any] = {lacks: False}
    with judge(**lacking) as server:
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


def test_a_server_that_asks_for_a_certificate_gets_it(engine: Engine, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = authority.identity("publisher")
    tls = SSLContext(PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.identity("server", "127.0.0.1").both)
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = CERT_REQUIRED
    known: dict[str, Any] = {"ca_file": str(authority.certificate)}
    with judge(tls) as server:
        given(engine)
        with pytest.raises(EventlogError, match=server.url):
            publish_all(scim_config(engine, server.url, **known))
        assert not server.requests
        own: dict[str, Any] = {"client_certificate": str(ours.certificate), "client_key": str(ours.key)}
        publish_all(scim_config(engine, server.url, **known, **own))
        assert told(server) == wanted(engine)
        assert not ends(engine)


def test_explain_shows_the_request(engine: Engine) -> None:
    with judge() as server:
        given(engine)
        explained = explain(engine, LogNames(), scim_config(engine, server.url, name="people"), 1)
    [sent] = explained.sent
    assert (sent.output, sent.note) == ("people", None)
    assert sent.text.startswith("POST /Users\n{")
    assert '"givenName": "Ada"' in sent.text


PRECONDITION = {"schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"], "detail": "name its version"}


@pytest.mark.parametrize("patch", [True, False], ids=["PATCH", "PUT"])
@pytest.mark.parametrize("status", ["428 Precondition Required", "412 Precondition Failed"])
def test_a_server_that_wants_versions_named_gets_them(engine: Engine, patch: bool, status: str) -> None:
    def demand(method: str, path: str) -> Any:
        if method in ("PATCH", "PUT", "DELETE") and not server.asked_with.get("HTTP_IF_MATCH"):
            body = json.dumps(PRECONDITION | {"status": status[:3]}).encode()
            return status, [("Content-Type", "application/scim+json"), ("Content-Length", str(len(body)))], body
        return None

    with judge(patch=patch) as server:
        server.meddle = demand
        given(engine)
        config = scim_config(engine, server.url)
        publish_all(config)
        run(engine, "UPDATE usr SET fname = 'Eve' WHERE idu = 1", "DELETE FROM usr_grp WHERE idu = 2")
        run(engine, "UPDATE usr SET boss = NULL", "DELETE FROM usr WHERE idu = 4")
        publish_all(config)
        assert not [end for end in ends(engine).values() if end[0] == "E"]
        assert told(server) == wanted(engine)
