"""A receiver that takes a fixed time for each document, however many come at once: `python -m bench.slow 0.005` says its port.

With `scim` behind the time it answers as a server of SCIM does: a new resource has an id.
"""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from itertools import count
from typing import Final

TAKEN: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
MADE: Final = "HTTP/1.1 201 Created\r\nContent-Type: application/scim+json\r\nContent-Length: {}\r\n\r\n{}"
ABILITIES: Final = '{"patch": {"supported": true}, "filter": {"supported": true}, "etag": {"supported": false}}'
_numbers = count(1)


class Desk(asyncio.Protocol):
    """One connection, on which one document follows the answer to the one before."""

    def __init__(self, seconds: float, *, has_resources: bool = False) -> None:
        self._seconds = seconds
        self._has_resources = has_resources
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if end and len(body) >= length(head):
            self._received = b""
            answer = make_answer(head) if self._has_resources else TAKEN
            asyncio.get_running_loop().call_later(self._seconds, self._answer, answer)

    def _answer(self, answer: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(answer)


def make_answer(head: bytes) -> bytes:
    """Answer as a server of SCIM: with a new id, or with what it can do."""
    body = f'{{"id": "{next(_numbers):032x}"}}' if head.startswith(b"POST") else ABILITIES
    return MADE.format(len(body), body).encode()


def length(head: bytes) -> int:
    """Bytes of the body that follows a head."""
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def main(seconds: float, kind: str = "") -> None:
    """Answers until somebody ends the process."""
    desk = partial(Desk, seconds, has_resources=kind == "scim")
    server = await asyncio.get_running_loop().create_server(desk, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), *sys.argv[2:]))
