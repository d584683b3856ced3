"""What a connection must not get away with: an answer that breaks off in its head."""

from __future__ import annotations

from http.client import HTTPResponse
from typing import BinaryIO


class UnreadableAnswer(Exception):  # noqa: N818  # it is no error of ours: the sink turns it into an outcome
    """An answer began well and then broke off, or does not end."""


class _Head:
    """The stream that the head of an answer is read from; `cut` when a line of it ended with the stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.cut = False

    def readline(self, limit: int = -1) -> bytes:
        line = self._stream.readline(limit)
        self.cut |= not line.endswith(b"\n")
        return line

    def close(self) -> None:
        self._stream.close()


class WholeHead(HTTPResponse):
    """Refuses a head that breaks off: http.client takes it for a whole one, and then no answer for success."""

    def begin(self) -> None:
        stream = self.fp
        head = _Head(stream)
        self.fp = head  # type: ignore[assignment]  # begin reads lines and nothing else
        try:
            super().begin()
        finally:
            if self.fp is not None:
                self.fp = stream
        if head.cut:
            raise UnreadableAnswer("it ends in its head.")
