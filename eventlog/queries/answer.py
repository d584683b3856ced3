"""Answers queries: finds objects, reads them back as the publisher does, and tells what the output publishes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.config.build import decider_of, name_of
from eventlog.config.outputs import default_output
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, DataError, EventlogError, shorten
from eventlog.core.model import REFRESH, Change, Event, Kind, Reason, Refusal
from eventlog.core.registry import steps_plugin
from eventlog.core.rules import Round
from eventlog.core.schema import Table
from eventlog.core.seams import Format, former_names_of
from eventlog.policies.bound import Policy
from eventlog.policies.shape import Shape
from eventlog.publisher.decide import parts_of
from eventlog.publisher.encode import Part
from eventlog.queries.asked import (
    Asked,
    EndedQuery,
    ObjectQuery,
    PagePlace,
    RefusedQuestion,
    SchemaQuery,
    write_token,
)
from eventlog.queries.find import Finder, class_among, read_association
from eventlog.queries.instances import (
    IDENTITY_CLASS,
    Instance,
    InstanceFormat,
    write_answer,
    write_identity,
    write_rest,
    write_schema,
    write_status,
)
from eventlog.queries.settings import QueryConfig, settings_of
from eventlog.refresh.loads import loads
from eventlog.sql.access import transaction
from eventlog.sql.connect import connect, connect_for_read_back, limit_sessions
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import list_tracked
from eventlog.xds.values import Settings

LOOK_SECONDS: Final = 10.0
"""Seconds for which the tables are taken for what they were."""

STATEMENT_SECONDS: Final = 30.0
LOCK_SECONDS: Final = 5.0


class FullError(DataError):
    """An answer has no room for all that it tells."""


class FoundObject(Struct, frozen=True, kw_only=True):
    """An object: its table, as it is called here and in the log, and its key as the log writes it."""

    table: str
    called: str
    key: str


class AskedTables(Struct, frozen=True, kw_only=True):
    """What can be asked for: classes behind the steps of the output, and how their rows are read."""

    round: Round
    shapes: tuple[Shape, ...]
    form: Format
    since: float

    def shape_of(self, table: Table) -> Shape | None:
        """Return the shape of a source table after the policies."""
        return next((shape for shape in self.shapes if shape.source is table), None)


class Answerer:
    """Answers documents with what the database has now. Nothing is written."""

    def __init__(self, config: Config, report: Callable[[str], None]) -> None:
        """Prepare to answer; `report` gets errors of the database, of which a caller learns no
        details.
        """
        self._config, self._report = config, report
        self._settings: QueryConfig = settings_of(config)
        self._engine: Engine | None = None
        self._names: LogNames | None = None
        self._sight: AskedTables | None = None
        self._one_at_a_time = Lock()

    def close(self) -> None:
        """Give the connections back."""
        if self._engine is not None:
            self._engine.dispose()

    def answer(self, asked: Sequence[Asked]) -> bytes:
        """Write the answers in the order of the questions, each with its status."""
        elements: list[str] = []
        room = self._settings.most_bytes
        for one in asked:
            pieces = list(self._one(one, room))
            room -= sum(map(len, pieces))
            elements += pieces
        return write_answer(elements)

    def _one(self, asked: Asked, room: int) -> Iterator[str]:
        if isinstance(asked, RefusedQuestion):
            yield write_status("error", asked.event_id, asked.why)
            return
        try:
            elements = self._answer_in(asked, room)
        except DataError as error:
            yield write_status("error", asked.event_id, str(error))
        except EventlogError as error:
            self._report(str(error))
            yield write_status("retry", asked.event_id, f"{type(error).__name__}: ask again later.")
        else:
            yield from elements
            yield write_status("success", asked.event_id)

    def _answer_in(self, asked: ObjectQuery | EndedQuery | SchemaQuery, room: int) -> list[str]:
        """Answer in so many bytes: a page has fewer objects, if there is no room for all."""
        most = self._settings.most_rows
        page = asked.page if isinstance(asked, ObjectQuery) else None
        if page is not None:
            most = min(most, page)
        while True:
            try:
                elements = [*self._write_answer(asked, self._look(), most)]
                self._refuse_long(elements, room)
            except FullError:
                if page is None or most == 1:
                    raise
                most //= 2
            else:
                return elements

    def _refuse_long(self, elements: Sequence[str], room: int) -> None:
        if sum(map(len, elements)) > room:
            raise FullError(
                f"The answer has more than {self._settings.most_bytes} bytes, which query.most_bytes is; ask for fewer attributes."
            )

    def _write_answer(
        self, asked: ObjectQuery | EndedQuery | SchemaQuery, sight: AskedTables, most: int
    ) -> Iterator[str]:
        if isinstance(asked, SchemaQuery):
            yield write_schema(shape.table for shape in sight.shapes)
            return
        # Objects of tables have none below them; and nothing is kept here of a search that somebody ends.
        if isinstance(asked, EndedQuery) or asked.scope == "subordinates":
            return
        if asked.classes == (IDENTITY_CLASS,):
            yield write_identity()
            return
        found = self._find_objects(asked, sight, most)
        shown, rest = found[:most], found[most:]
        for instance in _read(sight, [(one.called, one.key) for one in shown]):
            if all(_shows(instance, *value) for value in asked.search):
                yield instance.element(asked.event_id, asked.read)
        if rest:
            place = PagePlace(table=shown[-1].table, key=shown[-1].key)
            yield write_rest(write_token(replace(asked, after=place)), asked.event_id)

    def _look(self) -> AskedTables:
        """Return the tables as they are, or as read a moment ago."""
        with self._one_at_a_time:
            if self._sight is None or monotonic() - self._sight.since > LOOK_SECONDS:
                self._sight = self._read_tables()
            return self._sight

    def _read_tables(self) -> AskedTables:
        since, config = monotonic(), self._config
        engine, names = self._where()
        output = next(
            one for one in config.output or (default_output(),) if self._settings.output in ("", name_of(one))
        )
        # The steps of this output alone: what another one would need is not read.
        alone = replace(config, output=(output,))
        asked = decider_of(engine, names, alone).round
        assert asked.catalog is not None
        with engine.connect() as connection:
            captured = {(table.schema, table.name) for table in list_tracked(connection, names)}
        # Where others fill the log, no registry says of which tables: the configuration does.
        if config.source.tables or (config.source.schema and not captured):
            captured |= {(table.schema, table.name) for table in asked.catalog}
        steps = steps_plugin().of_output(output, config.policy)
        policy = Policy(steps, asked.catalog)
        if steps:
            policy.check()
        shapes = policy.shapes or [Shape(table, asked.catalog) for table in asked.catalog]
        publisher = config.publisher
        settings = Settings(
            time_syntax=publisher.time_syntax, enable_refs=publisher.enable_refs, schema_name=config.source.schema
        )
        form = InstanceFormat(settings=settings)
        seen = [one for one in shapes if not one.left_out and (one.source.schema, one.source.name) in captured]
        return AskedTables(
            round=asked,
            shapes=tuple([one for one in seen if one.source.key]),
            form=steps_plugin().format(form, steps) if steps else form,
            since=since,
        )

    def _where(self) -> tuple[Engine, LogNames]:
        if self._engine is None or self._names is None:
            source = self._config.source
            self._engine = connect(source.url)
            try:
                limit_sessions(self._engine, STATEMENT_SECONDS, LOCK_SECONDS)
            except ConfigError:  # a database without such limits
                limit_sessions(self._engine, None, None)
            self._names = log_columns(self._engine, source.wanted_names, source.columns)
        return self._engine, self._names

    def _find_objects(self, asked: ObjectQuery, sight: AskedTables, most: int) -> list[FoundObject]:
        """Find so many of the queried objects, and one more if there is one; DataError where all must be told at once."""
        found: list[FoundObject] = []
        after = asked.after
        for shape, searched in self._find_classes(asked, sight):
            table = shape.source.whole
            if after is not None and after.table != table:
                continue  # it is on earlier pages
            behind, after = None if after is None else after.key, None
            found += self._find_keys(asked, shape, searched, most - len(found), behind)
            if len(found) > most:
                break
        if after is not None:
            raise DataError(f"{shorten(after.table)} is not there any more; ask without the <query-token> again.")
        if len(found) > most and asked.page is None:
            problem = f"More than {most} objects are meant, which query.most_rows is"
            raise DataError(f"{problem}; say more of them with <search-attr>, or ask for pages with <query-ex>.")
        return found

    def _find_classes(self, asked: ObjectQuery, sight: AskedTables) -> Iterator[tuple[Shape, list[tuple[str, str]]]]:
        """Yield the queried classes, with search conditions by the source's names."""
        if asked.association is not None:
            named = read_association(asked.association)
            table = class_among([shape.source for shape in sight.shapes], named)
            shape = None if table is None else sight.shape_of(table)
            if shape is None:
                return  # nobody has told the receiver of such an object
            yield shape, _by_source(shape, asked.search) or []
            return
        classes = {name.casefold() for name in asked.classes}
        known = False
        for shape in sight.shapes:
            name = shape.table.class_name or shape.table.name
            if classes and not classes & {name.casefold(), shape.source.whole.casefold()}:
                continue
            searched = _by_source(shape, asked.search)
            known = known or searched is not None
            if searched is not None:
                yield shape, searched
        if asked.classes and not known:
            names = ", ".join([*asked.classes, *dict.fromkeys(name for name, _ in asked.search)])
            raise DataError(
                f"No class has these names and attributes: {shorten(names)}.",
                hint="Choose from the answer to <query-schema>.",
            )

    def _find_keys(
        self, asked: ObjectQuery, shape: Shape, searched: list[tuple[str, str]], most: int, after: str | None
    ) -> list[FoundObject]:
        """Find so many matching objects of a class, and one more."""
        engine, names = self._where()
        source = self._config.source
        limits = (source.statement_timeout, source.lock_timeout, self._config.publisher.read_back_timeout)
        reading = connect_for_read_back(engine, source.reader, *limits)
        [load] = loads(engine, names, [shape.source.whole], None, None)
        finder = Finder(dialect_of(engine), names, load, most)
        with transaction(reading, "What a query asks for", lone=True) as connection:
            if asked.association is not None:
                keys = finder.find_by_key(connection, read_association(asked.association).key)
            else:
                attributes = shape.source.loggable
                wanted = [(attributes[name], value) for name, value in searched]
                keys = finder.find_by_values(connection, wanted, after)
        return [FoundObject(table=shape.source.whole, called=load.called, key=key) for key in keys]


def _by_source(shape: Shape, search: Sequence[tuple[str, str]]) -> list[tuple[str, str]] | None:
    """Translate search conditions to the source's names; None if one is of an unpublished
    attribute.

    Otherwise a search would reveal hidden values.
    """
    plain = {name.casefold(): source for name, source in shape.plain.items()}
    captured = shape.source.attributes
    searched = []
    for name, value in search:
        source = plain.get(name.casefold())
        if source is None or (source not in captured and source not in shape.source.key):
            return None
        searched.append((source, value))
    return searched


def _shows(instance: Instance, name: str, value: str) -> bool:
    """Return True if the object is published with the value searched for; keys match by
    association.
    """
    pieces = {known.casefold(): known for known in instance.values}.get(name.casefold())
    return pieces is None or instance.has(pieces, value)


def _read(sight: AskedTables, found: Sequence[tuple[str, str]]) -> list[Instance]:
    """Read objects back as the publisher does, and tell them as the output is told."""
    if not found:
        return []
    now = dt.datetime.now(dt.UTC).replace(tzinfo=None)
    events = [
        Event(position=(number,), kind=Kind.UPDATE_ROW_BACK, table=table, key=key, time=now, perpetrator=REFRESH)
        for number, (table, key) in enumerate(found, 1)
    ]
    parts = parts_of(sight.round, [events])
    _refuse_unread(parts)
    instances: list[Instance] = []
    form = sight.form
    for part in parts:
        changes, catalog, _ = part.span.by_names(list(part.decision.changes), former_names_of(form))
        pieces: Iterator[Instance | Refusal] = form.writer(catalog)(_whole(changes))
        instances += [one for one in pieces if isinstance(one, Instance)]
    return sorted(instances, key=lambda one: one.position)


def _whole(changes: Sequence[Change]) -> list[Change]:
    return [change for change in changes if change.op in ("add", "modify")]


def _refuse_unread(parts: Sequence[Part]) -> None:
    """Raise DataError if an object is unreadable: an answer without it would be wrong."""
    for part in parts:
        for outcome in part.decision.outcomes:
            if outcome.reason is Reason.NO_ROOM:
                raise FullError(
                    "The objects have more bytes together than publisher.query_bytes allows; ask for fewer, such as one."
                )
            if outcome.reason not in (Reason.PUBLISHED, Reason.VANISHED, Reason.SUPERSEDED):
                raise DataError(f"An object cannot be read now ({outcome.reason}); `eventlog check` says more.")
