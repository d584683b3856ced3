"""`eventlog run --look`: the documents that outputs would get next. No lock is taken and nothing is marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from eventlog.config.build import consumer_settings_of, decider_of, log_settings_of, outputs_of
from eventlog.config.settings import LOG, Config
from eventlog.core.errors import SinkError, UsageError
from eventlog.core.model import Document
from eventlog.delivery.output import Output
from eventlog.publisher.planner import PlanMaker
from eventlog.publisher.plans import TakeAgainError
from eventlog.publisher.reader import JournalReader
from eventlog.publisher.selection import Take, take
from eventlog.sinks.files import file_name
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.publisher.decide import Decider
    from eventlog.publisher.tables import JournalRow


def look(config: Config, engine: Engine) -> Iterator[tuple[Output, Sequence[Document], int]]:
    """Yield each output's next documents, and the number of rows in them."""
    if config.source.kind != LOG:
        message = "--look shows rows of a log, and this source is a stream."
        raise UsageError(message, hint="`eventlog convert` turns what was captured of a stream into documents.")
    source = config.source
    names = log_columns(engine, source.wanted_names, source.columns)
    log = Log(engine, names)
    log.check()
    decider = decider_of(engine, names, config)
    journal = JournalReader(log, log_settings_of(config), decider.round.catalog)
    limit = consumer_settings_of(config).limit
    outputs = outputs_of(config)
    try:
        for output in outputs:
            taken, row = _take(journal, output, decider, limit)
            yield output, _make(journal, output, decider, limit, taken, row), len(taken.events)
    finally:
        for output in outputs:
            output.sink.close()


def _take(journal: JournalReader, output: Output, decider: Decider, limit: int) -> tuple[Take, JournalRow]:
    """Read an output's next rows; a new output gets those the foremost one lacks."""
    now = journal.now()
    with journal.reading() as view:
        outputs = view.memory.outputs
        known = [name for name in (output.name, *output.former_names) if name in outputs]
        row = outputs[known[0]] if known else view.memory.new_output(output.name)
        # In this memory alone: no table is written.
        outputs[row.name] = row
        taken = take(view, row.name, now=now, limit=limit, identities=decider.identities)
    return taken, row


def _make(
    journal: JournalReader, output: Output, decider: Decider, limit: int, taken: Take, row: JournalRow
) -> Sequence[Document]:
    """Make documents of the rows, as the output would get them."""
    if taken.is_empty:
        return ()
    maker, now = PlanMaker(journal, output, limit), journal.now()
    for _ in range(2):
        try:
            return maker.make(decider, taken, now, row, after="", trace=None).encoded.documents
        except TakeAgainError as error:
            # The tables were looked at just now: rows that name others are wrong.
            decider.looks.note(error.stale or frozenset())
    return ()


def write_documents(folder: Path, output: Output, documents: Sequence[Document]) -> None:
    """Write documents as files into a folder of the output's name."""
    place = folder / file_name(output.name)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for document in documents:
            (place / f"{file_name(document.id)}{output.format.suffix}").write_bytes(document.body)
    except OSError as error:
        raise SinkError(f"{place} cannot be written: {error.strerror}.", may_pass=False) from error
