"""SCIM servers for tests: scim2-server, another SCIM than ours, in a thread of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from scim2_models import ScimProvider
from scim2_server.memory import InMemoryStorage
from scim2_server.service import ScimService
from scim2_server.testserver.application import BearerTokenApplication
from scim2_server.testserver.cli import ThreadingWSGIServer
from scim2_server.utils import (
    load_default_resource_types,
    load_default_schemas,
    load_default_service_provider_config,
)

TOKEN = "token-of-tests"  # noqa: S105  # of a server that lives as long as a test

Answer = tuple[str, list[tuple[str, str]], bytes]
Meddle = Callable[[str, str], Answer | None]
"""Answers a request, by its method and path, in the server's place; None lets it have it."""


class Judge:
    """A SCIM server; `requests` are the methods and the paths of what it was asked."""

    def __init__(self, storage: InMemoryStorage, url: str) -> None:
        self.storage = storage
        self.url = url
        self.requests: list[tuple[str, str]] = []
        self.meddle: Meddle = lambda _method, _path: None
        self.after: Callable[[str, str], Any] = lambda _method, _path: None

    def resources(self, kind: str) -> list[dict[str, Any]]:
        """All resources of a type, as JSON."""
        every = [resource.model_dump() for resource in self.storage.resources]
        return [found for found in every if found["meta"]["resourceType"] == kind]

    def users(self) -> dict[str, dict[str, Any]]:
        """The users by their names; no two have one."""
        found = self.resources("User")
        by_name = {user["userName"]: user for user in found}
        assert len(by_name) == len(found)
        return by_name

    def groups(self) -> dict[str, dict[str, Any]]:
        """The groups by their names; no two have one."""
        found = self.resources("Group")
        by_name = {group["displayName"]: group for group in found}
        assert len(by_name) == len(found)
        return by_name

    def members(self, group: str) -> set[str]:
        """The names of a group's members."""
        names = {user["id"]: user["userName"] for user in self.resources("User")}
        return {names[member["value"]] for member in self.groups()[group].get("members") or ()}

    def asked(self, method: str) -> int:
        """How often it was asked so."""
        return sum(asked == method for asked, _ in self.requests)


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def judge(**without: bool) -> Iterator[Judge]:
    """A server; what is said to be False of `patch`, `filter` and `etag` it cannot do."""
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
    served = Judge(storage, "")

    def serve(environ: Any, start: Any) -> Any:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        served.requests.append((method, path + ("?" + environ["QUERY_STRING"] if environ.get("QUERY_STRING") else "")))
        answer = served.meddle(method, path)
        if answer is not None:
            status, headers, body = answer
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            start(status, headers)
            return [body]
        given = list(application(environ, start))
        served.after(method, path)
        return given

    with make_server("127.0.0.1", 0, serve, server_class=ThreadingWSGIServer, handler_class=_Quiet) as server:
        served.url = f"http://127.0.0.1:{server.server_port}/v2"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()


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
    "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, login VARCHAR(40) NOT NULL, fname VARCHAR(40), "
    "lname VARCHAR(40), mail VARCHAR(80), room VARCHAR(20), number INTEGER, boss INTEGER REFERENCES usr (idu), "
    "works INTEGER)",
    "CREATE TABLE usr_phone (idu INTEGER NOT NULL REFERENCES usr (idu), phone VARCHAR(40) NOT NULL, "
    "PRIMARY KEY (idu, phone))",
    "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(40))",
    "CREATE TABLE usr_grp (idg INTEGER NOT NULL REFERENCES grp (idg), idu INTEGER NOT NULL REFERENCES usr (idu), "
    "PRIMARY KEY (idg, idu))",
)
"""Users with managers and phones, groups with members."""
