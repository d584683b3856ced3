"""The rules for the log that a stream was captured into."""

from __future__ import annotations

from msgspec.structs import replace

from eventlog.config.build import options_of
from eventlog.config.settings import Config
from eventlog.core.rules import Round
from eventlog.publisher.decide import Decider, Looks
from eventlog.sources.stream.definitions import read_catalog
from eventlog.sql.history import history_stamp
from eventlog.sql.log import Log


def decider_of_stream(log: Log, config: Config, looks: Looks | None = None) -> Decider:
    """Make a decider by the tables a stream has described; it reads no rows back."""
    # Before the tables are read: what is entered in between counts as new at the next look.
    stamp = history_stamp(log.engine, log.names)
    options = replace(options_of(config), future=False)
    return Decider(Round(catalog=read_catalog(log), options=options), looks=looks, stamp=stamp)
