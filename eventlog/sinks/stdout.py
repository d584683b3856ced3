"""The stdout sink: documents on standard output, one after the other, each ended by a newline."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

from eventlog.core.errors import SinkError
from eventlog.core.model import Document, Outcome
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure


class StdoutSink:
    """Writes documents to a stream.

    A stream takes nothing back: after a crash the last documents stand there twice.
    """

    capabilities = SinkCapabilities()

    def __init__(self, stream: BinaryIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stdout.buffer
        self._last = ""

    def open(self, tenure: Tenure | None) -> None:
        """Do nothing: a stream cannot be taken over.

        A publisher makes sure it holds its log's lock before it writes.
        """

    def last(self) -> str:
        """Return the id of the last document this process wrote; nothing is known from before."""
        return self._last

    def resolve(self, plan: str) -> Resolved:
        """Know nothing: nobody can ask a stream what was read of it."""
        return Resolved()

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        """Do nothing: a stream has no hidden documents."""

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        """Writes the bodies and flushes; how durable that is, whoever reads the stream decides."""
        try:
            for document in documents:
                body = document.body
                if not body.endswith(b"\n"):
                    body += b"\n"
                self._stream.write(body)
            self._stream.flush()
        except BrokenPipeError as error:
            # Python flushes the stream once more at the end, and would complain there: so it is pointed
            # at nothing. A stream of a test has no number.
            with suppress(OSError, AttributeError):
                descriptor = self._stream.fileno()
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, descriptor)
                os.close(nothing)
            message = "Nobody reads standard output any more"
            message = f"{message}; the rows stay N and are published the next time."
            raise SinkError(message, may_pass=False) from error
        except OSError as error:
            problem = f"Standard output does not take documents: {error.strerror}."
            raise SinkError(problem, hint="It is tried again.") from error
        self._last = max([self._last, *[document.id for document in documents]])
        return ()

    def close(self) -> None:
        """Leaves the stream open, because it belongs to the process."""
