"""A publisher and an emulator of Microsoft Entra's bulkUpload: limits, answers that come later, refusals and kills."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, EventlogError, UsageError
from eventlog.explain.rows import explain
from eventlog.publisher.journal import Journal
from eventlog.sinks.scim.plugin import SCIM
from eventlog.sinks.scim.upload import EntraLane, UploadPace
from eventlog.sql.names import LogNames
from eventlog.verify.opening import target_of
from tests.integration.publishing import publish_all
from tests.support.entra import CLIENT, SECRET, Entra, entra
from tests.support.scim import ends, run, scim_config, scim_site
from tests.support.servers import databases
from tests.support.sinks import KilledError

ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
MAPPING: dict[str, Any] = {
    "mode": "entra",
    "tables": {
        "usr": {
            "delete": "disable",
            "columns": {
                "idu": "externalId",
                "login": "userName",
                "fname": "name.givenName",
                "lname": "displayName",
                "mail": 'emails[type eq "work"].value',
                "room": f"{ENTERPRISE}:department",
                "boss": f"{ENTERPRISE}:manager.value",
                "works": "active",
                "usr_phone.phone": "phoneNumbers.value",
            },
        }
    },
}


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    made = create_engine(f"sqlite:///{tmp_path}/source.db")
    yield made
    made.dispose()


def config_of(engine: Engine, service: Entra, publisher: dict[str, Any] | None = None, **output: Any) -> Config:
    login: dict[str, Any] = {"oauth_url": service.token_url, "oauth_client_id": CLIENT, "oauth_client_secret": SECRET}
    login |= {"authorization": None, "oauth_scope": "https://graph.microsoft.com/.default"}
    login["total_timeout"] = 120.0  # nothing waits for so long there
    return scim_config(engine, service.url, publisher, **{"scim": MAPPING, **login, **output})


def person(number: int, name: str = "") -> str:
    login = name or f"user{number}@example.com"
    return f"INSERT INTO usr VALUES ({number}, '{login}', 'Given{number}', 'Name{number}', NULL, 'R1', NULL, NULL, 1)"


def statuses(engine: Engine) -> dict[int, str]:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT record_id, status FROM event_log ORDER BY record_id")).all()
    return {int(number): str(letter) for number, letter in rows}


def awaited(engine: Engine) -> int:
    with engine.connect() as connection:
        return len(connection.execute(text("SELECT object FROM event_log_association")).all())


def test_users_are_uploaded_changed_and_disabled(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1), person(2), "INSERT INTO usr_phone VALUES (1, '123')")
        publish_all(config_of(engine, service))
        assert set(statuses(engine).values()) == {"S"}
        assert not service.users  # it was accepted, no more
        service.process()
        ada = service.users["1"]
        assert (ada["userName"], ada["name"], ada["active"]) == ("user1@example.com", {"givenName": "Given1"}, True)
        assert ada["phoneNumbers"] == [{"value": "123"}]
        run(engine, "UPDATE usr SET boss = 1, room = NULL WHERE idu = 2", "DELETE FROM usr_phone")
        publish_all(config_of(engine, service))
        service.process()
        assert service.users["1"]["phoneNumbers"] == []
        run(engine, "DELETE FROM usr WHERE idu = 1")
        publish_all(config_of(engine, service))
        service.process()
        assert service.users["1"]["active"] is False
        assert service.users["2"][ENTERPRISE] == {"manager": {"value": "1"}, "department": None}
        publish_all(config_of(engine, service))
        assert not ends(engine)
        assert awaited(engine) == 0
        assert sorted(service.created) == ["1", "2"]


def test_a_request_has_at_most_fifty_users_and_none_twice(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, *map(person, range(1, 121)))
        publish_all(config_of(engine, service))
        assert sorted(map(len, service.uploads), reverse=True) == [50, 50, 20]
        service.uploads.clear()
        run(engine, "UPDATE usr SET fname = 'A' WHERE idu = 1")
        run(engine, "UPDATE usr SET fname = 'B' WHERE idu = 1")
        publish_all(config_of(engine, service, {"batch_size": 100}))
        for operations in service.uploads:
            assert len({one["data"]["externalId"] for one in operations}) == len(operations)
        service.process()
        assert service.users["1"]["name"]["givenName"] == "B"


@pytest.mark.parametrize("database", databases())
def test_what_the_provisioning_log_says_becomes_the_letter(request: pytest.FixtureRequest, database: str) -> None:
    engine: Engine = request.getfixturevalue(database)
    with entra() as service:
        scim_site(engine)
        run(engine, person(1), person(2, "nodomain"), person(3), person(4))
        publish_all(config_of(engine, service, name="entra"))
        assert [*statuses(engine).values()] == ["S"] * 4
        service.in_scope = lambda data: data["externalId"] != "3"
        service.process()
        run(engine, "UPDATE event_log SET status = 'N' WHERE record_id = (SELECT MAX(record_id) FROM event_log)")
        publish_all(config_of(engine, service, name="entra"))
        found = ends(engine)
        assert [letter for letter, _ in found.values()] == ["E", "W"]
        [refused, skipped] = [note or "" for _, note in found.values()]
        assert "AzureActiveDirectoryInvalidUserPrincipalName: The name has no domain." in refused
        assert skipped == "Entra's provisioning log says skipped: The user is not in scope"
        # The last row was sent again: its user is there already, which is no warning.
        service.process()
        publish_all(config_of(engine, service, name="entra"))
        assert [*statuses(engine).values()] == ["S", "E", "W", "S"]
        assert awaited(engine) == 0


def test_another_output_that_lags_keeps_the_answer_waiting(engine: Engine, tmp_path: Path) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1, "nodomain"))
        config = config_of(engine, service, name="entra")
        other = {"sink": "files", "path": str(tmp_path / "xds"), "name": "other"}
        publish_all(config)
        both = _with(config, other)
        run(engine, person(2, "neither"))
        with engine.begin() as connection:
            publish_all(both)
            connection.execute(text("UPDATE event_log_output SET paused = 'by hand' WHERE name = 'other'"))
        run(engine, person(3, "nor"))
        publish_all(both)
        service.process()
        publish_all(both)
        assert [*statuses(engine).values()] == ["E", "E", "N"]
        run(engine, "UPDATE event_log_output SET paused = NULL WHERE name = 'other'")
        publish_all(both)
        publish_all(both)
        assert [*statuses(engine).values()] == ["E", "E", "E"]


def _with(config: Config, other: dict[str, Any]) -> Config:
    from eventlog.config.settings import from_settings

    settings = {
        "source": {"url": config.source.url},
        "publisher": {"allow_loopback": True},
        "output": [_plain(config.output[0]), other],
    }
    return from_settings(settings, {}, origin="a test")


def _plain(output: Any) -> dict[str, Any]:
    import msgspec

    made: dict[str, Any] = msgspec.to_builtins(output)
    return {key: value for key, value in made.items() if value is not None}


def test_several_uploads_of_a_user_wait_for_their_entries(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1))
        publish_all(config_of(engine, service))
        service.process()
        run(engine, "UPDATE usr SET login = 'nodomain' WHERE idu = 1")
        publish_all(config_of(engine, service))
        # Two entries for two uploads: the second one is refused.
        service.process()
        publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["S", "E"]
        # One entry for two uploads: it is that of both, once nothing else can come.
        service.together = True
        time.sleep(1.1)  # Entra's header `Date` has no parts of a second
        for name in ("x@example.com", "neither"):
            run(engine, f"UPDATE usr SET login = '{name}' WHERE idu = 1")
            publish_all(config_of(engine, service))
        service.process()
        publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["S", "E", "S", "S"]
        now = time.time()
        monkeypatch.setattr("eventlog.sinks.scim.provisioning.time.time", lambda: now + 1000)
        publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["S", "E", "E", "E"]


def test_a_log_that_says_nothing_is_a_warning_in_the_end(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1))
        publish_all(config_of(engine, service))
        now = time.time()
        monkeypatch.setattr("eventlog.sinks.scim.provisioning.time.time", lambda: now + 90_000)
        publish_all(config_of(engine, service))
        [(letter, note)] = ends(engine).values()
        assert letter == "W"
        assert "its provisioning log says nothing of it since" in str(note)
        assert awaited(engine) == 0


def test_a_log_that_nobody_may_read_stops_nothing(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        service.may_read_log = False
        for number in (1, 2):
            run(engine, person(number))
            publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["S", "S"]
        assert awaited(engine) == 2
        # Where nobody asks for answers nothing waits for them.
        run(engine, person(3))
        publish_all(config_of(engine, service, answers_every=0))
        assert awaited(engine) == 2


def test_what_cannot_be_read_of_a_request_ends_alone(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1), person(2).replace("Name2", "<Name2>"), person(3))
        publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["S", "E", "S"]
        assert [note for _, note in ends(engine).values()] == [
            "the receiver answered 400 InvalidDataFormat: Invalid Data Format"
        ]
        assert sorted(one["data"]["externalId"] for some in service.uploads for one in some) == ["1", "3"]


def test_tokens_pauses_and_silence_lose_nothing(engine: Engine) -> None:
    asked: list[str] = []
    with entra() as service:
        scim_site(engine)
        run(engine, person(1))

        def meddle(method: str, path: str) -> Any:
            if method == "POST" and path.endswith("bulkUpload"):
                asked.append(path)
                if len(asked) == 1:
                    return 429, {"Retry-After": "1"}, None
                if len(asked) == 2:
                    service.expire()
                if len(asked) == 4:
                    return 202, {}, {}
            return None

        service.meddle = meddle
        for _ in range(20):
            try:
                publish_all(config_of(engine, service))
                break
            except EventlogError:
                time.sleep(0.3)
        assert [*statuses(engine).values()] == ["S"]
        assert len(service.uploads) == 1


def test_no_more_than_forty_requests_go_in_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("eventlog.sinks.scim.upload.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(
        "eventlog.sinks.scim.upload.time.sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds)
    )
    pace, begun = UploadPace(), list[float]()
    chance = random.Random(1)
    for _ in range(500):
        pace.wait()
        begun.append(clock[0])
        clock[0] += chance.random() * 0.2
    assert all(later - first > 4.999 for first, later in zip(begun, begun[40:], strict=False))


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_doubled_or_lost_whenever_a_publisher_dies(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)  # the same each time
    plain = {name: getattr(Journal, name) for name in ("done", "answer_late")}
    plain_send = EntraLane._send

    def die() -> None:
        if chance.random() < 0.3:
            raise KilledError

    def send(self: EntraLane, *given: Any) -> Any:
        die()
        reply = plain_send(self, *given)
        die()
        return reply

    def dying(name: str) -> Any:
        def call(self: Journal, *given: Any) -> Any:
            die()
            result = plain[name](self, *given)
            die()
            return result

        return call

    monkeypatch.setattr(EntraLane, "_send", send)
    for name in plain:
        monkeypatch.setattr(Journal, name, dying(name))
    deaths = 0
    with entra() as service:
        scim_site(engine, ["row-back", "image", "field"][seed])
        for turn in range(4):
            numbers = range(10 * turn + 1, 10 * turn + 11)
            run(engine, *(person(number, "nodomain" if number % 5 == 0 else "") for number in numbers))
            run(engine, f"UPDATE usr SET fname = 'Turn{turn}' WHERE idu % 3 = 0")
            for _ in range(60):
                try:
                    publish_all(config_of(engine, service, {"lease": 1.0}))
                    break
                except KilledError:
                    deaths += 1
                    run(engine, "DELETE FROM event_log_mark WHERE name = 'lock'")
            service.process()
        monkeypatch.undo()
        now = time.time()
        monkeypatch.setattr("eventlog.sinks.scim.provisioning.time.time", lambda: now + 1000)
        publish_all(config_of(engine, service))
        with engine.connect() as connection:
            rows = connection.execute(text("SELECT idu, login, fname FROM usr")).all()
        wanted = {str(idu): (login, fname) for idu, login, fname in rows if "@" in login}
        found = {name: (user["userName"], user["name"]["givenName"]) for name, user in service.users.items()}
        assert deaths > 3
        assert found == wanted
        assert len(service.created) == len(set(service.created))
        # Each user without a domain has an error, and nobody else has.
        assert awaited(engine) == 0
        with engine.connect() as connection:
            refused = connection.execute(text("SELECT DISTINCT table_key FROM event_log WHERE status = 'E'")).all()
        assert {str(key).rpartition("=")[2] for (key,) in refused} == {str(n) for n in range(5, 41, 5)}
        assert set(statuses(engine).values()) == {"S", "E"}


def test_explain_check_and_verify_say_what_is_there(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1))
        config = config_of(engine, service, name="entra")
        [sent] = explain(engine, LogNames(), config, 1).sent
        assert sent.text.startswith("POST /Users\n{")
        assert '"externalId": "1"' in sent.text
        [output] = config.output
        assert SCIM.check is not None
        said = [finding.message for finding in SCIM.check(output)]
        assert said[-1].endswith("has a provisioning log that may be read")
        [*_, unasked] = SCIM.check(config_of(engine, service, answers_every=0).output[0])
        assert unasked.mend is not None
        service.may_read_log = False
        with pytest.raises(EventlogError, match="403"):
            list(SCIM.check(output))
        with pytest.raises(UsageError, match="cannot be read"):
            target_of(output, create_engine)


def test_an_answer_that_cannot_be_read_is_no_answer_and_a_wrong_address_is_said(engine: Engine) -> None:
    with entra() as service:
        scim_site(engine)
        run(engine, person(1))
        service.meddle = lambda _, path: (404, {}, None) if path.endswith("bulkUpload") else None
        with pytest.raises(EventlogError, match="answered 404"):
            publish_all(config_of(engine, service))
        service.meddle = lambda _, path: (202, {}, b"<html>") if path.endswith("bulkUpload") else None
        publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["N"]
        service.meddle = lambda _method, _path: None
        time.sleep(0.1)
        publish_all(config_of(engine, service))
        assert [*statuses(engine).values()] == ["S"]


@pytest.mark.parametrize(
    "change, words",
    [
        ({"type": "Group"}, "bulkUpload takes users alone"),
        ({"unique": "userName"}, "finds users by externalId"),
        ({"delete": "delete"}, "bulkUpload deletes nobody"),
        ({"columns": {"login": "userName"}}, "nothing that goes to externalId"),
    ],
)
def test_mappings_that_entra_cannot_take_are_refused(engine: Engine, change: dict[str, Any], words: str) -> None:
    service = Entra()
    service.root = "http://127.0.0.1:1"
    usr = MAPPING["tables"]["usr"] | change
    with pytest.raises(ConfigError, match=words):
        config_of(engine, service, scim=MAPPING | {"tables": {"usr": usr}})


def test_an_address_that_is_no_endpoint_is_refused(engine: Engine) -> None:
    with pytest.raises(ConfigError, match="no provisioning API endpoint"):
        scim_config(engine, "http://127.0.0.1:1/scim", scim=MAPPING)
    with pytest.raises(ConfigError, match="answers_within is -1"):
        scim_config(engine, "http://127.0.0.1:1/scim", answers_within=-1)
