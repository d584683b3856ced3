"""Groups, whose names servers do not keep apart, are there once; and what ends in the middle of a batch ends well."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import urllib3
from sqlalchemy import Engine, create_engine, text

from eventlog.care.rows import PROCESSED, Choice, requeue
from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError
from eventlog.daemon.publisher import Publisher
from eventlog.publisher.journal import Journal
from eventlog.sinks.scim.paths import CORE_GROUP, CORE_USER
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.integration.publishing import in_thread, publish_all, until
from tests.integration.scim_people import given
from tests.support.scim import TOKEN, Judge, ends, judge, run, scim_config, scim_site, told, wanted
from tests.support.sinks import KilledError

UNKNOWN = ("502 Bad Gateway", [("Content-Length", "0")], b"")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


def make_group(url: str) -> None:
    """Make the group, as another publisher does it."""
    make(url, "/Groups", {"schemas": [CORE_GROUP], "displayName": "staff"})


def make(url: str, place: str, body: dict[str, Any]) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/scim+json"}
    answer = urllib3.request("POST", f"{url}{place}", body=json.dumps(body), headers=headers)
    assert answer.status == 201, answer.data


def waiting(engine: Engine) -> bool:
    return any(letter == "N" for letter, _ in ends(engine).values())


def publish_until_done(config: Config, tries: int = 20) -> None:
    """Publish again after each failure, as a publisher does."""
    for _ in range(tries):
        with suppress(EventlogError):
            publish_all(config)
            return
        time.sleep(0.05)
    publish_all(config)


def test_a_group_that_another_publisher_makes_after_we_have_looked_is_there_once(engine: Engine) -> None:
    """So it is where a publisher freezes between its search and its request, and wakes when another one has the lock."""
    others: list[str] = []

    def meddle(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Groups") and not others:
            others.append(path)
            make_group(server.url)
        return None

    with judge() as server:
        server.meddle = meddle
        given(engine)
        publish_until_done(scim_config(engine, server.url, total_timeout=2.0))
        assert others
        assert told(server) == wanted(engine)
        assert not ends(engine)


@pytest.mark.parametrize("apart", [True, False], ids=["one after the other", "together"])
def test_two_groups_of_ours_that_are_called_alike_are_both_there(engine: Engine, apart: bool) -> None:
    answers: list[str] = []

    def answer_late(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Groups"):
            answers.append(path)
            if len(answers) == 1:
                time.sleep(0.5)
        return None

    with judge() as server:
        scim_site(engine)
        server.after = answer_late  # the receiver has the group, and its publisher does not know it
        config = scim_config(engine, server.url)
        twins = ["INSERT INTO grp VALUES (77, 'twins')", "INSERT INTO grp VALUES (78, 'twins')"]
        for statements in [twins[:1], twins[1:]] if apart else [twins]:
            run(engine, *statements)
            publish_all(config)
        run(engine, "UPDATE grp SET name = 'other' WHERE idg = 78")
        publish_all(config)
        assert sorted(group["displayName"] for group in server.resources("Group")) == ["other", "twins"]
        run(engine, "DELETE FROM grp WHERE idg = 78")
        publish_all(config)
        assert sorted(group["displayName"] for group in server.resources("Group")) == ["twins"]
        assert not ends(engine)


def test_two_groups_that_are_called_alike_are_both_there_where_no_answer_came(engine: Engine) -> None:
    lost: list[str] = []

    def lose(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Groups") and len(lost) < 2:
            lost.append(path)
            return UNKNOWN
        return None

    with judge() as server:
        scim_site(engine)
        server.after = lose
        config = scim_config(engine, server.url, total_timeout=1.0)
        run(engine, "INSERT INTO grp VALUES (77, 'twins')", "INSERT INTO grp VALUES (78, 'twins')")
        publish_until_done(config)
        assert not ends(engine)
        run(engine, "UPDATE grp SET name = 'other' WHERE idg = 78")
        publish_all(config)
        assert sorted(group["displayName"] for group in server.resources("Group")) == ["other", "twins"]
        assert not ends(engine)


def test_a_group_is_there_once_when_a_request_arrives_after_its_publisher_is_gone(engine: Engine) -> None:
    late: list[Timer] = []

    def meddle(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Groups") and not late:
            late.append(Timer(0.7, make_group, [server.url]))
            late[0].start()
            return UNKNOWN
        return None

    with judge() as server:
        server.meddle = meddle
        given(engine)
        # Each one that publishes is another publisher.
        publish_until_done(scim_config(engine, server.url, total_timeout=2.0))
        late[0].join()
        assert told(server) == wanted(engine)
        assert not ends(engine)


def test_a_group_that_a_server_has_surely_not_made_is_made_without_a_wait(engine: Engine) -> None:
    refused: list[str] = []

    def meddle(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Groups") and len(refused) < 2:
            refused.append(path)
            status = ("503 Service Unavailable", "429 Too Many Requests")[len(refused) - 1]
            return status, [("Retry-After", "0"), ("Content-Length", "0")], b""
        return None

    with judge() as server:
        server.meddle = meddle
        given(engine)
        config = scim_config(engine, server.url, total_timeout=100.0)
        began = time.monotonic()
        with in_thread(Publisher(config)):
            until(lambda: "staff" in server.groups() and not waiting(engine), "a group")
        assert told(server) == wanted(engine)
        assert len(refused) == 2
        assert time.monotonic() - began < 90


def test_a_user_that_a_late_request_makes_after_its_end_is_gone_too(engine: Engine) -> None:
    late: list[Timer] = []

    def meddle(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Users") and not late:
            late.append(Timer(1.5, make, [server.url, "/Users", {"schemas": [CORE_USER], "userName": "eve"}]))
            late[0].start()
            return UNKNOWN
        return None

    with judge() as server:
        server.meddle = meddle
        scim_site(engine)
        with in_thread(Publisher(scim_config(engine, server.url, total_timeout=3.0))):
            run(engine, "INSERT INTO usr (idu, login) VALUES (9, 'eve')")
            until(lambda: "eve" in server.users() and not waiting(engine), "a user")
            run(engine, "DELETE FROM usr WHERE idu = 9")
            until(lambda: not waiting(engine), "its end")
            late[0].join()
        assert not server.users()
        assert not ends(engine)


def test_the_end_of_a_user_in_doubt_spares_who_has_the_name_since(engine: Engine) -> None:
    """It looks for the name again when a lost request cannot come any more; the other one's answer is under way then."""
    lost: list[float] = []

    def meddle(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Users") and not lost:
            lost.append(time.monotonic())
            return UNKNOWN
        end = time.monotonic() + 2  # the other one comes as soon as the name is free
        while method == "POST" and server.users() and time.monotonic() < end:
            time.sleep(0.01)
        return None

    def answer_late(method: str, path: str) -> Any:
        names = [user.get("name") or {} for user in server.resources("User")]
        if method == "POST" and any(name.get("givenName") == "Two" for name in names):
            time.sleep(max(0.0, lost[0] + 4.5 - time.monotonic()))
        return None

    with judge() as server:
        server.meddle, server.after = meddle, answer_late
        scim_site(engine, "field")
        with in_thread(Publisher(scim_config(engine, server.url, total_timeout=4.0))):
            run(engine, "INSERT INTO usr (idu, login) VALUES (3, 'cyd')")
            until(lambda: "cyd" in server.users() and not waiting(engine), "a user")
            time.sleep(1.0)  # so that the other one's request is not given up before its answer
            run(
                engine,
                "DELETE FROM usr WHERE idu = 3",
                "INSERT INTO usr (idu, login, fname) VALUES (2, 'cyd', 'Two')",
            )
            until(lambda: not waiting(engine), "another user of the name")
        assert set(server.users()) == {"cyd"}
        assert not ends(engine)


def test_the_end_of_a_user_waits_for_no_request_that_has_made_the_user(engine: Engine) -> None:
    asked: list[str] = []

    def meddle(method: str, path: str) -> Any:
        if method == "POST" and path.endswith("/Users"):
            asked.append(path)
            if len(asked) == 1:
                return UNKNOWN
            if len(asked) == 2:  # the first arrives just before the second
                make(server.url, "/Users", {"schemas": [CORE_USER], "userName": "eve"})
        return None

    with judge() as server:
        server.meddle = meddle
        scim_site(engine)
        with in_thread(Publisher(scim_config(engine, server.url, total_timeout=60.0))):
            run(engine, "INSERT INTO usr (idu, login) VALUES (9, 'eve')")
            until(lambda: "eve" in server.users() and not waiting(engine), "a user")
            began = time.monotonic()
            run(engine, "DELETE FROM usr WHERE idu = 9")
            until(lambda: not waiting(engine), "its end")
        assert time.monotonic() - began < 30
        assert not server.users()
        assert not ends(engine)


def die_once(monkeypatch: pytest.MonkeyPatch, server: Judge, method: str) -> list[str]:
    """Let a publisher die once before it can enter what was answered to such a request; collect the deaths."""
    plain, deaths = Journal.done, list[str]()

    def done(self: Journal, *given_to: Any) -> Any:
        if not deaths and server.asked(method):
            deaths.append(method)
            raise KilledError
        return plain(self, *given_to)

    monkeypatch.setattr(Journal, "done", done)
    return deaths


def test_a_change_that_comes_again_after_its_object_was_deleted_is_no_error(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with judge() as server:
        given(engine, "field")
        config = scim_config(engine, server.url, {"lease": 1.0})
        publish_all(config)
        deaths = die_once(monkeypatch, server, "DELETE")
        run(engine, "UPDATE usr SET fname = 'Daniel' WHERE idu = 4", "UPDATE usr SET boss = NULL WHERE idu = 3")
        run(engine, "DELETE FROM usr WHERE idu = 4")
        with pytest.raises(KilledError):
            publish_all(config)
        run(engine, "DELETE FROM event_log_mark WHERE name = 'lock'")
        publish_all(config)
        assert deaths
        assert told(server) == wanted(engine)
        assert not ends(engine)


def test_a_user_who_was_renamed_before_anybody_knew_the_id_is_there_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with judge() as server:
        scim_site(engine, "field")
        config = scim_config(engine, server.url)
        deaths = die_once(monkeypatch, server, "PATCH")
        run(engine, "INSERT INTO usr (idu, login) VALUES (3, 'dan')", "UPDATE usr SET login = 'cyd' WHERE idu = 3")
        with pytest.raises(KilledError):
            publish_all(config)
        run(engine, "DELETE FROM event_log_mark WHERE name = 'lock'")
        publish_all(config)
        assert deaths
        assert set(server.users()) == {"cyd"}
        assert not ends(engine)


@pytest.mark.parametrize("style", ["image", "field"])
def test_changes_that_wait_again_with_the_end_of_their_object_are_no_errors(engine: Engine, style: str) -> None:
    with judge() as server:
        scim_site(engine, style)
        config = scim_config(engine, server.url)
        run(engine, "INSERT INTO usr (idu, login) VALUES (5, 'cyd')")
        publish_all(config)
        with engine.connect() as connection:
            first = connection.execute(text("SELECT max(record_id) + 1 FROM event_log")).scalar_one()
        for statement in ("UPDATE usr SET login = 'bob' WHERE idu = 5", "DELETE FROM usr WHERE idu = 5"):
            run(engine, statement)
            publish_all(config)
        assert requeue(Log(engine, LogNames()), [(first, first + 9)], Choice(statuses=PROCESSED)) == 2
        publish_all(config)
        assert not server.users()
        # Without a name nobody knows whether the receiver has it still.
        assert {letter for letter, _ in ends(engine).values()} <= {"W"}
