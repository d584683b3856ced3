"""Points about the journal: what somebody has done to its tables by hand, before the publisher
meets it.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Engine

from eventlog.check.damage import damages, read_journal
from eventlog.check.point import Point, failure, ok, warning
from eventlog.config.build import former_names_of, name_of
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, DataError
from eventlog.publisher.places import admit
from eventlog.sources.marks import LOOKS_REFUSED, Marks
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames


def journal_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """Yield a point for each fault of the tables beside the log.

    Yield one that all is well where there is none.
    """
    log = Log(engine, names)
    with log.transaction() as connection:
        reading = read_journal(connection, log)
    faults = list(damages(reading))
    for fault in faults:
        if fault.serious:
            yield failure("journal", DataError(fault.said, hint=fault.mend))
        else:
            yield warning("journal", fault.said, fault.mend)
    with log.transaction() as connection:
        refused = Marks(log).get(connection, LOOKS_REFUSED)
    if refused is not None:
        hint = "Until that is repaired rows are read at each `polling_interval`, and no sooner."
        yield warning("looks", f"the publisher cannot look for new rows between its turns: {refused}", hint)
    if not faults:
        yield ok("journal", "its tables fit each other and the log")
    # Without an output nobody says with which ones it would be published.
    if config.output and not any(fault.serious for fault in faults):
        # An output keeps its place in the journal when it is renamed.
        named = [(name_of(output), former_names_of(output)) for output in config.output]
        try:
            with log.moment() as connection:
                admit(connection, log, named)
        except ConfigError as error:
            yield failure("outputs", error)
