"""Lineage of a conversion: a run from its beginning to its end, told to the same file as a publisher's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eventlog.config.settings import Config
from eventlog.lineage.events import Run, RunState, append_event, begin_run, write_event
from eventlog.lineage.publishing import name_source, settings_of

JOB = "convert"
"""The name of the job, beside that of the publisher."""


@contextmanager
def report_conversion(config: Config, *, source: str, output: str, tables: Sequence[str]) -> Iterator[None]:
    """Tell the beginning and the end of a conversion of these tables; nothing without a file.

    `source` is the URL of a log, or empty for files.
    """
    settings = settings_of(config)
    if not settings.file:
        yield
        return
    origin = name_source(source) if source else "file"
    run = begin_run(Run(job=JOB, namespace=settings.namespace, source=origin, outputs=(output,), kind="BATCH"))

    def report(state: RunState, fault: str = "") -> None:
        event = write_event(run, state, dict.fromkeys(tables), dt.datetime.now(dt.UTC), fault)
        append_event(Path(settings.file), event)

    report("START")
    try:
        yield
    except BaseException as error:
        report("FAIL", str(error) or type(error).__name__)
        raise
    report("COMPLETE")
