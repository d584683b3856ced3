"""What is verified: the captured tables, an output's policy and what it holds, as the configuration
has them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.compare.pace import Pace
from eventlog.config.build import catalog_of, room_of
from eventlog.config.settings import Config
from eventlog.core.errors import DataError, SourceError, UsageError
from eventlog.core.references import find_loose_references, find_referenced, make_reference
from eventlog.core.schema import Catalog, Table
from eventlog.policies.plugin import check_policy
from eventlog.policies.steps import Steps
from eventlog.qlik.values import TableValues
from eventlog.refresh.loads import loads
from eventlog.sources.compare.catalog import query_of
from eventlog.sources.compare.reader import tables_at
from eventlog.sql.access import table_fault
from eventlog.sql.connect import reading_engine
from eventlog.sql.dialect import dialect_of
from eventlog.sql.log import Log
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from eventlog.tracked.registry import read_registry, refuse_condition
from eventlog.verify.expected import Expected, SpelledReferences, VerifiedTable, plain, read_objects, shape_of
from eventlog.verify.objects import Objects
from eventlog.verify.proof import Limits, Proving, TableProof
from eventlog.verify.repair import repair
from eventlog.verify.targets import Target

NOTHING_THERE: Final = "The output has no table for it."
NOTHING_NEEDED: Final = "It has no row, and the output has no table for it yet."
WITHOUT_KEY: Final = "Its rows have no key, by which verify would name them."


class Verified(Struct, frozen=True, kw_only=True):
    """The proof of a table, and how many objects were asked for anew."""

    proof: TableProof
    repaired: int = 0


class Verifier:
    """Compares the tables of a source with what one output holds of them. A source without triggers
    has no log.
    """

    def __init__(
        self,
        engine: Engine,
        log: Log | None,
        config: Config,
        target: Target,
        *,
        output: str = "",
        steps: Steps = (),
        pace: Pace | None = None,
        limits: Limits | None = None,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._log = log
        self._config = config
        self._target = target
        self._output = output
        self._pace = pace or Pace()
        self._limits = limits or Limits()
        self._sleep = sleep
        source = config.source
        timeouts = (source.statement_timeout, source.lock_timeout)
        self._reading = reading_engine(engine, source.reader, *timeouts)
        if log is None:
            self._catalog = tables_at(engine, source.tables, source.schema, source.own)
        else:
            self._catalog = catalog_of(log.engine, log.names, config)
        self._policy = check_policy(output, steps, self._catalog) if steps else None
        self._reader = SqlRowReader(self._reading, self._catalog, room_of(config))
        self._proving: list[Proving] = []

    @property
    def rows(self) -> int:
        """Count the rows of the source hashed so far."""
        return sum(proving.hashed for proving in self._proving)

    def sources(self, names: Sequence[str], schema: str | None) -> list[VerifiedTable]:
        """List the captured tables: the named ones, else all with triggers."""
        if self._log is None:
            return self._list_compared_sources(names, schema)
        with self._log.transaction() as connection:
            tracked = [*read_registry(connection, self._log.names)]
        if not (names or tracked):
            problem = f"No table has triggers of the log {self._log.name}."
            raise UsageError(problem, hint="Name the tables that are to be compared.")
        wanted = list(names) or tracked
        tables = []
        for load in loads(self._log.engine, self._log.names, wanted, schema, None):
            # Rows that the triggers leave out no output has.
            when = (load.when,) if load.when else ()
            table = _describe_table(self._catalog, load.table)
            tables.append(VerifiedTable(table=table, called=load.called, when=when))
        return tables

    def _list_compared_sources(self, names: Sequence[str], schema: str | None) -> list[VerifiedTable]:
        """List tables and queries without triggers: the named ones, else all compared."""
        settings = self._config.source.own
        tables: list[Table] = []
        if names:
            table_names = [name for name in names if name not in settings.queries]
            if table_names:
                tables += reflect(self._reading, table_names, schema)
            for table in self._catalog:
                if query_of(table, settings) is not None and table.name in names:
                    tables.append(table)
        else:
            tables += self._catalog
        return [VerifiedTable(table=table, called=table.whole, query=query_of(table, settings)) for table in tables]

    def verify(self, source: VerifiedTable, *, mend: bool = False, whole: bool = False) -> Verified:
        """Prove one table; with `mend` ask anew for differing rows: a `whole` proof only for all of them."""
        try:
            expected, notes = self._find_expected(source)
            if expected is None:
                return Verified(proof=TableProof(table=source.called, notes=notes, compared=False))
            table = source.table
            called = (source.called, table.name, table.whole)
            objects = None if self._log is None else Objects(self._log, called, self._output)
            proving = Proving(
                expected,
                self._target,
                objects,
                self._pace,
                self._limits,
                sleep=self._sleep,
            )
            self._proving.append(proving)
            proof = replace(proving.run(), notes=notes)
            done = 0
            if mend and self._log is not None and not (whole and proof.more):
                done = repair(self._log, expected, proving.differing, self._output)
        except (DataError, SourceError) as error:
            # A table that is locked or damaged, or may not be read, keeps no other from being compared.
            if isinstance(error, SourceError) and table_fault(dialect_of(self._reading), error.__cause__) is None:
                raise
            return Verified(proof=TableProof(table=source.called, problem=str(error)))
        return Verified(proof=proof, repaired=done)

    def verify_all(
        self,
        sources: Sequence[VerifiedTable],
        *,
        mend: bool = False,
        jobs: int = 1,
    ) -> Iterator[Verified]:
        """Prove tables, so many at a time."""
        verify = partial(self.verify, mend=mend)
        if jobs == 1:
            yield from map(verify, sources)
            return
        with ThreadPoolExecutor(jobs, thread_name_prefix="verify") as pool:
            yield from pool.map(verify, sources)

    def _find_expected(self, source: VerifiedTable) -> tuple[Expected | None, tuple[str, ...]]:
        """Describe the output's expected content of a table, and list the columns left out."""
        if source.table.whole_row:
            return None, (WITHOUT_KEY,)
        if source.when and self._log is not None and self._reading is self._log.engine:
            with self._log.transaction() as connection:
                refuse_condition(connection, self._log.names, source.called)
        shape, table = None, source.table
        if self._policy is not None:
            shape = shape_of(source, self._policy)
            if shape is None:
                return None, ("The policy of the output leaves it out.",)
            table = shape.table
        there = self._target.columns(table)
        if there is None and self._target.selects:
            return None, ("The output maps nothing of it.",)
        if there is None:
            with plain(self._reading, source).side.snapshot() as now:
                if not now.count():
                    return None, (NOTHING_NEEDED,)
            hint = "Publish a change of it, or a full load with `eventlog refresh`."
            raise DataError(NOTHING_THERE, hint=hint)
        missing = [name for name in TableValues(table).names if name.casefold() not in there]
        of_children = [attribute for attribute in table.attributes.values() if attribute.child is not None]
        held = self._target.several(table)
        several = [attribute for attribute in of_children if attribute.name.casefold() in held]
        if several:
            missing += [attribute.name for attribute in of_children if attribute not in several]
        padded = self._target.padded(table)
        notes = []
        if missing:
            names = ", ".join(missing)
            notes.append(f"Not compared, for the output has no such column: {names}.")
        if of_children and not several:
            notes.append("Child tables are not compared.")
        references = self._find_references(source.table, table)
        if shape is None and not several and not references.sent:
            return plain(self._reading, source, there, padded), tuple(notes)
        expected = read_objects(
            self._reading, source, table, self._policy, self._reader, there, several, padded, references
        )
        return expected, tuple(notes)

    def _find_references(self, source: Table, sent: Table) -> SpelledReferences:
        """Find the references that the output has as the rows are called that they name."""
        if not self._target.names_objects:
            return SpelledReferences()
        named = find_loose_references(self._catalog)
        if (source.schema, source.name) not in named:
            return SpelledReferences()
        found = {name: find_referenced(self._catalog, sent, one.column) for name, one in sent.loggable.items()}
        return SpelledReferences(
            named,
            {
                name: make_reference(other, sent.loggable[name].column)
                for name, other in found.items()
                if other is not None and other.loose_key and len(other.key) == 1
            },
        )


def _describe_table(catalog: Catalog, table: Table) -> Table:
    """Describe the table as the publisher sees it, without uncaptured columns."""
    for described in catalog:
        if (described.schema, described.name) == (table.schema, table.name):
            return described
    return table
