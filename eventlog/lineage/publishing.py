"""Lineage of a publisher: a run from when it has the log's lock until it ends, told now and then as long as rows come."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from threading import Event as Flag
from typing import Any

from eventlog.config.build import name_of
from eventlog.config.settings import Config, within
from eventlog.core.errors import EventlogError
from eventlog.core.plugins import BackgroundOrder, BackgroundPlugin, TablePlugin
from eventlog.core.secrets import SecretSettings
from eventlog.lineage.events import Run, RunState, append_event, begin_run, differ, write_event


class LineageConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where run events of OpenLineage are appended, as JSON lines; without a `file` nowhere.

    They are told every so many seconds while rows come. `namespace` is that of the job and its outputs, and
    `job` its name.
    """

    file: str = ""
    namespace: str = "eventlog"
    job: str = "publisher"
    every: float = 60.0

    def __post_init__(self) -> None:
        within("lineage.every", self.every, 1, 86_400)


def settings_of(config: Config) -> LineageConfig:
    """Return `[lineage]` of a configuration."""
    settings: LineageConfig = config.table("lineage")
    return settings


def name_source(url: str) -> str:
    """Name a database by its kind, host and port, never by its login."""
    from sqlalchemy.engine import make_url

    parsed = make_url(url) if url else None
    if parsed is None:
        return "stream"
    kind = parsed.get_backend_name()
    if not parsed.host:
        return f"file://{parsed.database or ''}"
    return f"{kind}://{parsed.host}:{parsed.port}" if parsed.port else f"{kind}://{parsed.host}"


class PublisherLineage:
    """Tells what the publisher reads and where that goes, until it is stopped."""

    def __init__(self, order: BackgroundOrder) -> None:
        config: Config = order.config
        settings = settings_of(config)
        self._file, self._every = Path(settings.file), settings.every
        self._vitals: Any = order.vitals
        self._ended = Flag()
        outputs = tuple([name_of(output) for output in config.output]) or ("standard output",)
        source = name_source(config.source.url)
        self._run = begin_run(Run(job=settings.job, namespace=settings.namespace, source=source, outputs=outputs))

    def run(self) -> None:
        """Report the beginning, each news, and the end."""
        reported: dict[str, int] = {}
        self._report("START", reported)
        while not self._ended.wait(self._every):
            now = dict(self._vitals.reading().tables)
            if differ(reported, now):
                self._report("RUNNING", now)
                reported = now
        reading = self._vitals.reading()
        self._report("FAIL" if reading.error else "COMPLETE", dict(reading.tables), reading.error or "")

    def stop(self) -> None:
        """End it soon."""
        self._ended.set()

    def _report(self, state: RunState, tables: dict[str, int], fault: str = "") -> None:
        append_event(self._file, write_event(self._run, state, tables, dt.datetime.now(dt.UTC), fault))


def _check(config: Config) -> None:
    settings = settings_of(config)
    if settings.file and Path(settings.file).is_dir():
        raise EventlogError(f"lineage.file is {settings.file}, which is a folder; name a file.")


TABLE = TablePlugin(settings=LineageConfig, check=_check)
LINEAGE = BackgroundPlugin(wanted=lambda config: bool(settings_of(config).file), build=PublisherLineage)
