"""A connection of the page: one that lets us wait ends, and makes room where too many are open."""

from __future__ import annotations

from asyncio import TimerHandle, Transport
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from eventlog.daemon.endpoint import PATIENCE_SECONDS, is_late, leaving


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with an end to waiting."""

    waits_since: float | None = None
    peer = ""
    _timer: TimerHandle | None = None
    _judged: object = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self.peer = self.client[0] if self.client else ""
        self.waits_since = self.loop.time()
        self._timer = self.loop.call_later(PATIENCE_SECONDS, self._look)
        for one in leaving([one for one in self.connections if isinstance(one, Connection)], self):
            one.end()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._judge()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._judge()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._judge()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._judge()

    def end(self) -> None:
        """Breaks the connection off."""
        self.connections.discard(self)
        self.transport.abort()

    def _judge(self) -> None:
        """Who waits for whom has changed, or has not; how long we wait counts from when we began to."""
        if not self._is_theirs():
            self.waits_since = None
        elif self.waits_since is None or self.cycle is not self._judged:
            self.waits_since = self.loop.time()
        self._judged = self.cycle

    def _is_theirs(self) -> bool:
        """Whether it is the other side that has something to do: ask, finish asking, or take the answer."""
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            return True
        return bool(cycle.more_body or self.flow.write_paused)

    def _look(self) -> None:
        if is_late(self, self.loop.time()):
            self.end()
            return
        rest = PATIENCE_SECONDS
        if self.waits_since is not None:
            rest -= self.loop.time() - self.waits_since
        self._timer = self.loop.call_later(max(rest, 0.1), self._look)
