"""SCIM servers for tests: scim2-server, another SCIM than ours, in a thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

import urllib3
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.build import name_of
from eventlog.config.settings import Config, from_settings
from eventlog.sinks.scim.requests import PATCH_OP
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.verify.opening import target_of
from eventlog.verify.verifying import Verified, Verifier
from tests.support.wsgi import serve_application

if TYPE_CHECKING:
    from scim2_server.memory import InMemoryStorage

TOKEN = "token-of-tests"  # of a server that lives as long as a test

Answer = tuple[str, list[tuple[str, str]], bytes]
Meddle = Callable[[str, str], Answer | None]
"""Answers a request, by its method and path, in the server's place; None lets it have it."""


class Judge:
    """A SCIM server; `requests` are the methods and the paths of what it was asked."""

    def __init__(self, storage: InMemoryStorage, url: str) -> None:
        self.storage = storage
        self.url = url
        self.requests: list[tuple[str, str]] = []
        self.asked_with: dict[str, Any] = {}
        """What WSGI says of the request that it has now: its headers."""
        self.meddle: Meddle = lambda _method, _path: None
        self.after: Meddle = lambda _method, _path: None
        """Answers a request that the server has done, in its place."""

    def resources(self, kind: str) -> list[dict[str, Any]]:
        """Return all resources of a type as JSON."""
        every = [resource.model_dump() for resource in self.storage.resources]
        return [found for found in every if found["meta"]["resourceType"] == kind]

    def users(self) -> dict[str, dict[str, Any]]:
        """Return the users by name; no two share one."""
        found = self.resources("User")
        by_name = {user["userName"]: user for user in found}
        assert len(by_name) == len(found)
        return by_name

    def groups(self) -> dict[str, dict[str, Any]]:
        """Return the groups by name; no two share one."""
        found = self.resources("Group")
        by_name = {group["displayName"]: group for group in found}
        assert len(by_name) == len(found)
        return by_name

    def members(self, group: str) -> set[str]:
        """Return the names of a group's members."""
        names = {user["id"]: user["userName"] for user in self.resources("User")}
        return {names[member["value"]] for member in self.groups()[group].get("members") or ()}

    def change(self, method: str, name: str, operations: Sequence[Mapping[str, Any]] = ()) -> None:
        """Change or delete a user or a group, as somebody else does it."""
        resource = (self.groups() | self.users())[name]
        path = f"/{resource['meta']['resourceType']}s/{resource['id']}"
        body = {"schemas": [PATCH_OP], "Operations": operations} if operations else None
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/scim+json"}
        answer = urllib3.request(method, self.url + path, json=body, headers=headers)
        assert answer.status < 300, answer.data

    def forget(self, user: str) -> None:
        """Take a user who is gone out of the groups, as most servers do."""
        with self.storage.operation():
            for resource in self.storage.resources:
                if isinstance(members := getattr(resource, "members", None), list):
                    members[:] = [member for member in members if member.value != user]

    def asked(self, method: str) -> int:
        """Count the requests of this method."""
        return sum(asked == method for asked, _ in self.requests)


@contextmanager
def judge(tls: SSLContext | None = None, **without: bool) -> Iterator[Judge]:
    """Run a server; it lacks those of `patch`, `filter` and `etag` given as False."""
    # They read the source of each class that they make, which takes a process full of modules ten seconds.
    from scim2_models import ScimProvider
    from scim2_server.memory import InMemoryStorage
    from scim2_server.service import ScimService
    from scim2_server.testserver.application import BearerTokenApplication
    from scim2_server.utils import (
        load_default_resource_types,
        load_default_schemas,
        load_default_service_provider_config,
    )

    config = load_default_service_provider_config()
    for name, supported in without.items():
        getattr(config, name).supported = supported
    provider = ScimProvider.from_discovery(
        load_default_schemas().values(), load_default_resource_types().values(), config=config
    )
    storage = InMemoryStorage()
    application = BearerTokenApplication(
        storage, provider, service=ScimService(provider, secret="x" * 32), bearer_tokens=[TOKEN]
    )
    server = Judge(storage, "")

    def serve(environ: Any, start: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        server.requests.append((method, path + ("?" + environ["QUERY_STRING"] if environ.get("QUERY_STRING") else "")))
        server.asked_with = environ
        answer = server.meddle(method, path)
        if answer is not None:
            status, headers, body = answer
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start(status, headers)
            return [body]
        begun: list[Any] = []

        def begin(*said: Any) -> Any:
            begun.extend(said)

        given = list(application(environ, begin))
        answer = server.after(method, path)
        if answer is not None:
            start(*answer[:2])
            return [answer[2]]
        start(*begun)
        return given

    with serve_application(serve, tls) as root:
        server.url = f"{root}/v2"
        yield server


MAPPING: dict[str, Any] = {
    "tables": {
        "usr": {
            "type": "User",
            "columns": {
                "login": "userName",
                "fname": "name.givenName",
                "lname": "name.familyName",
                "mail": 'emails[type eq "work"].value',
                "room": 'addresses[type eq "work"].locality',
                "number": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:employeeNumber",
                "boss": "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager.value",
                "works": "active",
                "usr_phone.phone": "phoneNumbers.value",
            },
        },
        "grp": {"type": "Group", "columns": {"name": "displayName", "usr_grp.idu": "members"}},
    }
}
"""Users and groups of the tables below, as SCIM has them."""

TABLES = (
    (
        "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, login VARCHAR(40) NOT NULL, fname VARCHAR(40), "
        "lname VARCHAR(40), mail VARCHAR(80), room VARCHAR(20), number INTEGER, boss INTEGER REFERENCES usr (idu), "
        "works INTEGER)"
    ),
    (
        "CREATE TABLE usr_phone (idu INTEGER NOT NULL REFERENCES usr (idu), phone VARCHAR(40) NOT NULL, "
        "PRIMARY KEY (idu, phone))"
    ),
    "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40))",
    (
        "CREATE TABLE usr_grp (idg INTEGER NOT NULL REFERENCES grp (idg), idu INTEGER NOT NULL REFERENCES usr (idu), "
        "PRIMARY KEY (idg, idu))"
    ),
)
"""Users with managers and phones, groups with members."""


ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
USER_COLUMNS = ("login", "fname", "lname", "mail", "room", "number", "boss", "works", "phones")


def wanted(engine: Engine) -> tuple[dict[str, dict[str, Any]], dict[str, set[str]]]:
    """Read users by login, and group members by group name, from the tables."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT * FROM usr")).mappings().all()
        phones = connection.execute(text("SELECT idu, phone FROM usr_phone")).all()
        groups = {int(idg): str(name) for idg, name in connection.execute(text("SELECT idg, name FROM grp")).all()}
        members = connection.execute(text("SELECT idg, idu FROM usr_grp")).all()
    logins = {row["idu"]: row["login"] for row in rows}
    users: dict[str, dict[str, Any]] = {}
    for row in rows:
        user = {column: row[column] for column in ("login", "fname", "lname", "mail", "room")}
        user |= {"number": None if row["number"] is None else str(row["number"]), "boss": logins.get(row["boss"])}
        works = None if row["works"] is None else bool(row["works"])
        users[row["login"]] = user | {"works": works, "phones": {phone for idu, phone in phones if idu == row["idu"]}}
    in_groups = {name: {logins[idu] for idg, idu in members if idg == group} for group, name in groups.items()}
    return users, in_groups


def found(
    users: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, dict[str, Any]], dict[str, set[str]]]:
    """Convert a server's resources to the same form; no two share a name."""
    names = {user["id"]: user["userName"] for user in users}
    assert len(set(names.values())) == len(users)
    told: dict[str, dict[str, Any]] = {}
    for user in users:
        name, more = user.get("name") or {}, user.get(ENTERPRISE) or {}
        work: dict[str, Any] = {
            kind: next((value for value in user.get(kind) or () if value.get("type") == "work"), {})
            for kind in ("emails", "addresses")
        }
        boss = more.get("manager") or {}
        told[user["userName"]] = {
            "login": user["userName"],
            "fname": name.get("givenName"),
            "lname": name.get("familyName"),
            "mail": work["emails"].get("value"),
            "room": work["addresses"].get("locality"),
            "number": more.get("employeeNumber"),
            "boss": names.get(boss.get("value")),
            "works": user.get("active"),
            "phones": {phone["value"] for phone in user.get("phoneNumbers") or ()},
        }
    assert len({group["displayName"] for group in groups}) == len(groups)
    members = {
        group["displayName"]: {names.get(m["value"], "nobody") for m in group.get("members") or ()} for group in groups
    }
    return told, members


def told(server: Judge) -> tuple[dict[str, dict[str, Any]], dict[str, set[str]]]:
    """Return the judge's users and groups."""
    return found(server.resources("User"), server.resources("Group"))


def scim_site(engine: Engine, style: str = "row-back") -> None:
    """Make the tables, and a log that captures them."""
    with engine.begin() as connection:
        for statement in TABLES:
            connection.execute(text(statement))
    install(engine)
    for table, child in (("usr", "usr_phone"), ("grp", "usr_grp")):
        track(engine, [table], TriggerOptions(style=Style(style), children=(child,)))


def scim_config(engine: Engine, url: str, publisher: Mapping[str, Any] | None = None, **output: Any) -> Config:
    """Configure a publisher of that log to a server."""
    settings = {"sink": "scim", "url": url, "authorization": f"Bearer {TOKEN}", "connections": 4, "scim": MAPPING}
    # For so long groups wait for what a publisher before has sent.
    settings["total_timeout"] = 10.0
    return from_settings(
        {
            "source": {"url": engine.url.render_as_string(hide_password=False)},
            "publisher": {"allow_loopback": True, "retry_first": 0.05, **(publisher or {})},
            "output": [settings | output],
        },
        {},
        origin="a test",
    )


def run(engine: Engine, *statements: str) -> None:
    """Change the tables in one transaction."""
    with engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def verify(engine: Engine, config: Config, *, mend: bool = False, fails: bool = False) -> dict[str, Verified]:
    """Verify the tables of the log, each with what was found; `fails` says that one cannot be compared."""
    [output] = config.output
    log = Log(engine, LogNames())
    target = target_of(output, create_engine, log=log)
    verifier = Verifier(engine, log, config, target, output=name_of(output), steps=output.steps)
    found = [verifier.verify(source, mend=mend) for source in verifier.sources((), None)]
    assert fails or not [one.proof.problem for one in found if one.proof.problem]
    return {one.proof.table: one for one in found}


def ends(engine: Engine) -> dict[int, tuple[str, str | None]]:
    """Return statuses other than success, with notes."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT record_id, status FROM event_log WHERE status <> 'S'")).all()
        told_notes = connection.execute(text("SELECT record_id, note FROM event_log_outcome")).all()
    notes: dict[int, str | None] = {int(number): note for number, note in told_notes}
    return {int(number): (str(letter), notes.get(number)) for number, letter in rows}
