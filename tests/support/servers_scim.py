"""Keycloak for tests: `keycloak`, whose SCIM API takes users and groups; stopped, it keeps what it has.

`./dev fetch keycloak` gets the program from Maven's central repository; EVENTLOG_REQUIRE=keycloak makes its absence a failure.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import urllib3

from eventlog.sinks.scim.requests import PATCH_OP
from tests.support.servers import absent, found, free_port

PATIENCE = 600.0
"""Seconds in which it is there: the first start builds it."""
REALM = "eventlog"
CLIENT, SECRET = "eventlog", "secret-of-tests"
SETTINGS = ("--features=scim-api", "--db=dev-file", "--http-host=127.0.0.1", "--cache=local", "--import-realm")


class Keycloak:
    """A Keycloak with a realm that takes SCIM."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._folder = folder / "keycloak"
        # It builds itself where it stands, and keeps its database there.
        shutil.copytree(program, self._folder, symlinks=True)
        self._port = free_port()
        self._pool = urllib3.PoolManager(retries=False, timeout=60)
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ("", 0.0)
        self.root = f"http://127.0.0.1:{self._port}"
        self.url = f"{self.root}/realms/{REALM}/scim/v2"
        self.token_url = f"{self.root}/realms/{REALM}/protocol/openid-connect/token"
        imported = self._folder / "data" / "import"
        imported.mkdir(parents=True)
        (imported / "realm.json").write_text(json.dumps(self._realm()), encoding="utf-8")

    def start(self) -> None:
        """Return when it gives tokens."""
        said = self._folder / "said.log"
        command = ["bin/kc.sh", "start-dev", *SETTINGS, f"--http-port={self._port}"]
        environment = os.environ | {"JAVA_OPTS_APPEND": "-Xmx700m -XX:TieredStopAtLevel=1"}
        with said.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self._folder, env=environment, start_new_session=True
            )
        deadline = time.monotonic() + PATIENCE
        while not self._gives_tokens():
            if self._process.poll() is not None or time.monotonic() > deadline:
                absent("keycloak", said.read_text(errors="replace")[-800:])
            time.sleep(0.5)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        if self._process is not None:
            os.killpg(self._process.pid, 9)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Give back everything."""
        self.kill()
        self._pool.clear()

    def ask(self, method: str, path: str, content: Any = None) -> Any:
        """Ask its SCIM API; what it answers is no refusal."""
        token = self._fetch_token()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/scim+json"}
        answer = self._pool.request(method, self.url + path, json=content, headers=headers)
        assert answer.status < 300, (answer.status, answer.data)
        return answer.json() if answer.data else None

    def change(self, path: str, *operations: dict[str, Any]) -> None:
        """Change a resource, as somebody else does it."""
        self.ask("PATCH", path, {"schemas": [PATCH_OP], "Operations": operations})

    def resources(self, place: str) -> list[dict[str, Any]]:
        """Read all resources of a type, page by page and one by one."""
        resources: list[dict[str, Any]] = []
        while True:
            page = self.ask("GET", f"{place}?startIndex={len(resources) + 1}&count=100")
            resources += page.get("Resources") or []
            if not page.get("Resources") or len(resources) >= page["totalResults"]:
                return resources

    def clear(self) -> None:
        """Delete all users and groups."""
        for place in ("/Groups", "/Users"):
            for resource in self.resources(place):
                self.ask("DELETE", f"{place}/{resource['id']}")

    def _fetch_token(self) -> str:
        token, until = self._token
        if time.monotonic() > until:
            form = {"grant_type": "client_credentials", "client_id": CLIENT, "client_secret": SECRET}
            answer = self._pool.request("POST", self.token_url, fields=form, encode_multipart=False)
            assert answer.status == 200, answer.data
            token = answer.json()["access_token"]
            self._token = token, time.monotonic() + 30
        return token

    def _gives_tokens(self) -> bool:
        try:
            self._token = ("", 0.0)
            return bool(self._fetch_token())
        except (urllib3.exceptions.HTTPError, AssertionError):
            return False

    def _realm(self) -> dict[str, Any]:
        audience = {"included.custom.audience": self.url, "access.token.claim": "true"}
        mapper = {"name": "scim", "protocol": "openid-connect", "protocolMapper": "oidc-audience-mapper"}
        client = {"clientId": CLIENT, "secret": SECRET, "serviceAccountsEnabled": True, "publicClient": False}
        login = {"username": f"service-account-{CLIENT}", "enabled": True, "serviceAccountClientId": CLIENT}
        roles = ["manage-users", "view-users", "query-users", "query-groups"]
        return {
            "realm": REALM,
            "enabled": True,
            "sslRequired": "none",
            "scimApiEnabled": True,
            "editUsernameAllowed": True,
            "clients": [client | {"protocolMappers": [mapper | {"config": audience}]}],
            "users": [login | {"clientRoles": {"realm-management": roles}}],
        }


@pytest.fixture(scope="session")
def keycloak_process() -> Iterator[Keycloak]:
    """Start the server at the first use."""
    if shutil.which("java") is None:
        absent("keycloak", "there is no Java that runs it")
    program = found("keycloak", "keycloak")  # first: where it is not there, no folder is left behind
    folder = Path(tempfile.mkdtemp(prefix="eventlog-keycloak-"))
    made = Keycloak(program, folder)
    try:
        made.start()
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def keycloak(keycloak_process: Keycloak) -> Keycloak:
    """Empty the server of users and groups."""
    keycloak_process.clear()
    return keycloak_process
