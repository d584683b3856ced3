"""Several processes decide a batch and write its changes: each takes the objects of its share, one process puts together.

Law: all events of an object go to one worker, and what the workers wrote is put in order before documents are made of
it. So documents are byte for byte those of a publisher without workers, however many there are.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from operator import attrgetter
from typing import IO, Final

import msgspec
from msgspec import Struct

from eventlog.core.errors import EventlogError, MachineError
from eventlog.core.model import Event, Outcome, Position, Refusal
from eventlog.core.rules.identity import Identities
from eventlog.core.seams import Batch, Written
from eventlog.delivery.share import Done, Job, Share, Worker, share_of

WORTHWHILE: Final = 1000
"""Events of a batch from which on handing it out costs less than it saves."""

LENGTH: Final = 8
"""Bytes before each message that say how long it is."""

WELL, FAILED = b"+", b"!"
MAIN: Final = "from eventlog.delivery.workers import main; main()"

_encode = msgspec.msgpack.Encoder().encode
_read_share = msgspec.msgpack.Decoder(Share).decode
_read_done = msgspec.msgpack.Decoder(Done).decode


class Collected(Struct, frozen=True, kw_only=True):
    """What all workers made of a batch; `written` and `refused` are of each output, changes in their order."""

    others: dict[Position, Outcome]
    written: list[list[Written]]
    refused: list[list[Refusal]]
    changes: int


class Workers:
    """Worker processes, started when they are first needed. Batches are collected in the order in which they went out."""

    def __init__(self, job: Job, count: int) -> None:
        self._job = job
        self._told = pickle.dumps(job)
        self._count = count
        self._processes: list[subprocess.Popen[bytes]] = []
        self._out: list[Batch] = []

    def going_on(self, former: Workers | None) -> Workers:
        """The former ones, when they would be told the same as these: processes take a while to start."""
        if former is None:
            return self
        if not former.does(self._told, self._count):
            former.close()
            return self
        former.forget()
        return former

    def does(self, told: bytes, count: int) -> bool:
        """Whether so many processes have been told this."""
        return (self._told, self._count) == (told, count)

    def hand_out(self, batch: Batch) -> None:
        """Gives every worker its share of the batch, if it is one that pays."""
        if batch.notes or len(batch.events) < WORTHWHILE:
            return
        try:
            messages = [_encode(share_of(events, batch.now)) for events in self._shares(batch.rows)]
        except UnicodeEncodeError:
            return  # SQLite keeps any bytes as text, which no message can carry: such a batch is decided here
        if not self._out and any(process.poll() is not None for process in self._processes):
            self.close()  # one has died while it had nothing to do
        if not self._processes:
            self._start()
        self._out.append(batch)
        for process, message in zip(self._processes, messages, strict=True):
            _tell(process, message)

    def has(self, batch: Batch) -> bool:
        """Whether this batch was handed out."""
        return any(batch is out for out in self._out)

    def collect(self) -> Collected:
        """What the workers made of the batch that went out first."""
        answers = [_heard(process) for process in self._processes]
        del self._out[0]
        for answer in answers:
            if answer[:1] == FAILED:
                error = pickle.loads(answer[1:])  # noqa: S301  written by our own process, into a pipe of ours
                assert isinstance(error, EventlogError)
                raise error
        return _together([_read_done(memoryview(answer)[1:]) for answer in answers])

    def forget(self) -> None:
        """Lets go of what is still out."""
        if self._out:
            self.close()

    def close(self) -> None:
        """Ends the processes; what they were doing is lost, and nobody has seen it."""
        processes, self._processes, self._out = self._processes, [], []
        for process in processes:
            process.kill()
            process.communicate()

    def _start(self) -> None:
        for _ in range(self._count):
            command = [sys.executable, "-c", MAIN]
            self._processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for process in self._processes:
            _tell(process, self._told)

    def _shares(self, events: Sequence[Event]) -> list[list[Event]]:
        """The events of each worker; those that name no object can go anywhere."""
        identities = Identities(self._job.catalog)
        shares: list[list[Event]] = [[] for _ in range(self._count)]
        places: dict[tuple[str | None, str | None], list[Event]] = {}
        for event in events:
            named = event.table, event.key
            share = places.get(named)
            if share is None:
                # Read as a row event's, a key means what it means to any event, or more.
                row = identities.row_id(event.table, event.key, row_event=True)
                share = places[named] = shares[hash(row) % self._count]
            share.append(event)
        return shares


def main() -> None:
    """What a worker process does: shares come on standard input, answers go to standard output, until nobody asks."""
    for asked in (signal.SIGINT, signal.SIGTERM):
        signal.signal(asked, signal.SIG_IGN)  # a stop is told to the publisher, which finishes its batch first
    source, target = sys.stdin.buffer, sys.stdout.buffer
    job = _read(source)
    if job is None:
        return
    worker = Worker(pickle.loads(job))  # noqa: S301  written by the publisher that started this process
    while (message := _read(source)) is not None:
        _write(target, _answer(worker, message))


def _answer(worker: Worker, message: bytes) -> bytes:
    try:
        return WELL + _encode(worker.do(_read_share(message)))
    except EventlogError as error:
        return FAILED + pickle.dumps(error)


def _together(shares: Sequence[Done]) -> Collected:
    """What was written in the order of the changes: a change stands where its last event stands."""
    return Collected(
        others={outcome.position: outcome for share in shares for outcome in share.others},
        written=[
            sorted([one for share in several for one in share], key=attrgetter("place"))
            for several in zip(*(share.written for share in shares), strict=True)
        ],
        refused=[
            [one for share in several for one in share]
            for several in zip(*(share.refused for share in shares), strict=True)
        ],
        changes=sum(share.changes for share in shares),
    )


def _tell(process: subprocess.Popen[bytes], message: bytes) -> None:
    assert process.stdin is not None
    try:
        _write(process.stdin, message)
    except OSError as error:
        raise _ended(process) from error


def _heard(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    message = _read(process.stdout)
    if message is None:
        raise _ended(process)
    return message


def _ended(process: subprocess.Popen[bytes]) -> MachineError:
    return MachineError(f"The worker process {process.pid} has ended in the middle of a batch; it is decided again.")


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(len(message).to_bytes(LENGTH, "big"))
    stream.write(message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """The next message; None when the other side has ended."""
    length = int.from_bytes(stream.read(LENGTH), "big")
    message = stream.read(length)
    return message if length and len(message) == length else None
