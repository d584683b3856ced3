"""Keeps the rules that rows are explained by, as long as the tables look as they did: to read all tables anew takes
most of the time of a row's page.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from eventlog.config.build import read_track_stamp
from eventlog.config.settings import LOG, Config
from eventlog.core.schema import Catalog
from eventlog.explain.rows import rules_of
from eventlog.sql.findlog import with_schema
from eventlog.sql.history import history_stamp
from eventlog.sql.rows import ColumnStamps, column_stamps
from eventlog.tracked.stamp import read_stamp

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.core.rules import Round
    from eventlog.sql.names import LogNames

KEPT_SECONDS: Final = 30.0
"""Seconds for which what no stamp tells is believed to be as it was: a table that somebody else's triggers log."""


class _StampedRules(Struct, frozen=True, kw_only=True):
    """Rules, when they were made, and the stamps of that moment."""

    rules: Round
    at: float
    stamps: tuple[Any, ...] | None
    catalog: Catalog
    columns: ColumnStamps


class KeptRules:
    """The rules of one log, by which rows are explained; several threads may ask."""

    def __init__(self, engine: Engine, names: LogNames, config: Config) -> None:
        self._engine = engine
        self._names = names
        self._config = config
        self._kept: _StampedRules | None = None

    def read(self) -> Round:
        """Return the rules with the tables as they look now."""
        # Before the tables: what changes while they are read counts as new at the next look.
        stamps, kept = self._read_stamps(), self._kept
        if kept is not None and stamps is not None and stamps == kept.stamps:
            young = monotonic() - kept.at < KEPT_SECONDS
            if young and column_stamps(self._engine, kept.catalog) == kept.columns:
                return kept.rules
        at = monotonic()
        rules = rules_of(self._engine, self._names, self._config)
        catalog = rules.catalog or Catalog()
        columns = column_stamps(self._engine, catalog)
        self._kept = _StampedRules(rules=rules, at=at, stamps=stamps, catalog=catalog, columns=columns)
        return rules

    def _read_stamps(self) -> tuple[Any, ...] | None:
        """Read what changes with the tracked tables and with their history; None where this login may not."""
        if self._config.source.kind != LOG:
            return ()
        try:
            with self._engine.connect() as connection:
                tables = read_stamp(connection, with_schema(connection, self._names))
        except SQLAlchemyError:
            return None
        return read_track_stamp(self._engine, self._names), history_stamp(self._engine, self._names), tables
