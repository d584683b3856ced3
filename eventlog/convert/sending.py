"""Sends a conversion's documents to a sink, each once, also when the sending was interrupted and is
gone on with.

Before the first document is sent, a note says behind which document of the sink's they begin. The
note stands with the work of the conversion, which stays there with it until all is sent; so who
goes on makes the same documents again, and leaves out those up to the last one that the sink has.
No journal can say this in its place: a conversion of files has none, and one of a log writes into the
log only with --mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
from msgspec import Struct

from eventlog.convert.forms import SentForm
from eventlog.convert.settings import SentMessages, SentTables, Target
from eventlog.core.errors import SinkError, UsageError
from eventlog.core.model import Outcome
from eventlog.core.seams import Sink
from eventlog.durable_files import write_file

SENDING: Final = "sending"
NOTHING_YET: Final = "Nothing was done yet; give the command again when it answers."
ONCE_MORE: Final = "Give the same command once more: it continues where it was."


class Begun(Struct, frozen=True, kw_only=True):
    """The note: documents begin after the one with this id. What was refused is kept, for not all
    sinks tell it again.
    """

    after: str
    refused: dict[int, str] = {}


class Sent(Struct, frozen=True, kw_only=True):
    """How many documents were sent, and which events were not taken, by the places of their
    outcomes.
    """

    documents: int
    refused: dict[int, str]


def sink_of(target: SentTables | SentMessages) -> Sink:
    """Open the sink and take it over from a former writer; load its modules only now."""
    from eventlog.sinks.lake.settings import LakeSettings

    sink: Sink
    if isinstance(target.into, LakeSettings):
        from eventlog.core.packages import require
        from eventlog.sinks.lake.plugin import lake_sink, needs_of

        for need in needs_of(target.into):
            require(need.what, need.module)
        sink = lake_sink(target.into)
    elif isinstance(target, SentTables):
        from eventlog.sinks.database.sink import DatabaseSink

        sink = DatabaseSink(target.into)
    else:
        from eventlog.sinks.kafka.sink import KafkaSink

        sink = KafkaSink(target.into)
    # Connections that were opened on the way are closed before the error goes up.
    try:
        sink.open(None)
    except BaseException:
        sink.close()
        raise
    return sink


def reach(target: Target) -> None:
    """Ask the sink once before the work: a refusal at the end would cost hours."""
    if isinstance(target, SentTables | SentMessages):
        with (
            our_words(NOTHING_YET),
            closing(sink_of(target)) as sink,
        ):
            sink.last()


@contextmanager
def our_words(hint: str) -> Iterator[None]:
    """Replace the hint of sinks' errors: a daemon retries by itself, here somebody has to."""
    try:
        yield
    except SinkError as error:
        if not error.may_pass:
            raise
        raise SinkError(error.message, hint=hint, may_pass=True) from error


def is_sending(work: Path) -> bool:
    """Return True if a conversion with this work folder was interrupted while it sent."""
    return any(work.glob(f"*/{SENDING}"))


def send(
    target: SentTables | SentMessages,
    form: SentForm,
    rendered: Iterable[pa.RecordBatch],
    work: Path,
) -> Sent:
    """Send the changes in the order of their positions."""
    note, count = work / SENDING, 0
    with our_words(ONCE_MORE), closing(sink_of(target)) as sink:
        last_id = sink.last()
        begun = _find_begin(note, last_id)
        is_behind_last = begun.after == last_id
        for document in form.documents(rendered, begun.after):
            count += 1
            if not is_behind_last:
                # It went before the interruption.
                if document.id < last_id:
                    continue
                # The last one that is there must be ours, else nobody can say which of ours are.
                if document.id != last_id:
                    raise something_else(last_id)
                # It is sent once more, and taken as done: what was refused of it may not be noted.
                is_behind_last = True
            begun = note_refused(note, begun, sink.commit(document.id, [document]))
        if not is_behind_last:
            # Its last one lies behind all of ours.
            raise something_else(last_id)
    return Sent(documents=count, refused=begun.refused)


def note_refused(note: Path, begun: Begun, outcomes: Sequence[Outcome]) -> Begun:
    """Note the events refused by a sink, with those refused before."""
    news = {outcome.position[0]: outcome.note or "" for outcome in outcomes}
    if not news.keys() - begun.refused.keys():
        return begun
    begun = Begun(after=begun.after, refused=begun.refused | news)
    write_file(note, msgspec.json.encode(begun))
    return begun


def _find_begin(note: Path, last: str) -> Begun:
    """Find the sink's last document before ours; note it at the first call."""
    if note.exists():
        return msgspec.json.decode(note.read_bytes(), type=Begun)
    begun = Begun(after=last)
    write_file(note, msgspec.json.encode(begun))
    return begun


def something_else(last_id: str) -> SinkError:
    """Make the error for a receiver somebody else has written to under our name."""
    problem = "Something else was written there since this conversion was interrupted"
    message = f"{problem}: its last change_seq is {last_id}."
    return SinkError(message, hint="Name a task of its own.", may_pass=False)


def refuse_other(order: str, work: Path) -> None:
    """Refuse an order other than the one interrupted here while it sent."""
    if is_sending(work) and not (work / order / SENDING).exists():
        message = f"{work.parent} holds a conversion that was interrupted while it was sent."
        raise UsageError(message, hint="Give its own command once more; or choose another folder.")
