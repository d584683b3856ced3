"""A schema registry for tests: it answers by HTTP, wants a password, and refuses what old consumers could not be told by.

What may follow what, Avro's own library decides: a new schema has to read what an older one wrote.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self
from urllib.parse import unquote

import urllib3
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityType
from avro.schema import parse

USER, PASSWORD = "writer", "pa55"


class RegistryServer:
    """A registry on a free port; as a context it runs."""

    def __init__(self) -> None:
        self.subjects: dict[str, list[str]] = {}
        self.schemas: list[str] = []
        self.broken: bytes | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(*outer.registered(unquote(self.path.split("/")[2]), body["schema"]))

            def do_GET(self) -> None:
                number = int(self.path.rpartition("/")[2])
                known = 1 <= number <= len(outer.schemas)
                self._answer(200, {"schema": outer.schemas[number - 1]}) if known else self._answer(404, {})

            def _answer(self, status: int, content: dict[str, Any]) -> None:
                wanted = urllib3.make_headers(basic_auth=f"{USER}:{PASSWORD}")["authorization"]
                if self.headers.get("Authorization") != wanted:
                    status, content = 401, {"message": "Unauthorized"}
                body = outer.broken if outer.broken is not None else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.login = {"registry": self.url, "registry_user": USER, "registry_password": PASSWORD}
        """What settings say of it."""

    def registered(self, subject: str, schema: str) -> tuple[int, dict[str, Any]]:
        """Answer the registration of a schema for a subject."""
        former = self.subjects.setdefault(subject, [])
        if former and schema not in former:
            checker = ReaderWriterCompatibilityChecker()  # type: ignore[no-untyped-call]  # the library forgot to type it
            found = checker.get_compatibility(parse(schema), parse(former[-1]))
            if found.compatibility is not SchemaCompatibilityType.compatible:
                return 409, {"message": f"Schema being registered is incompatible: {'; '.join(found.messages)}"}
        if schema not in former:
            former.append(schema)
        if schema not in self.schemas:
            self.schemas.append(schema)
        return 200, {"id": self.schemas.index(schema) + 1}

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
