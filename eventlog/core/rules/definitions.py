"""Definitions in time: which one of a table's definitions a row of the log was written under.

A definition begins with a row of the log: the first that could be written by triggers made for it.
Rows before it belong to the one before. Where nobody knows to the row when a definition began, a
row that names what its own has not belongs to the nearest that has it. A row that asks for its
whole object gets what stands there now, so it goes by today's.

What one definition says is decided by itself, with a catalog of that time, so the rules know
nothing of all this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, KeySyntaxError
from eventlog.core.model import Change, Event, Op, ReadBack, Refusal, RowId, Unreadable
from eventlog.core.rules.lifetimes import ROW_BACK
from eventlog.core.rules.screen import Identities, Naming
from eventlog.core.schema import Catalog, Table, TableMatch
from eventlog.core.seams import FormerNames, RowReader
from eventlog.core.table_names import write_name
from eventlog.core.tablekey import format_parts, parse

FullName = tuple[str | None, str]
"""Schema and name of a class."""

BEFORE_ALL_NUMBERS: Final = -(2**63)
"""Where a definition begins of which nobody knows when it did."""


class Definition(Struct, frozen=True, kw_only=True, eq=False):
    """A class as it was from row `first` on, and what it is `today`: None where it is gone.
    `renamed` are today's names of its columns, as far as they are others; `table.gone` are the
    attributes that it has no more. `images` are the numbers that image rows of this definition may
    begin with, its own one and former ones, and the columns of each.
    """

    table: Table
    first: int = BEFORE_ALL_NUMBERS
    today: Table | None = None
    renamed: Mapping[str, str] = {}
    images: Mapping[int, tuple[str, ...]] = {}

    @property
    def full_name(self) -> FullName:
        return self.table.schema, self.table.name

    @property
    def current(self) -> bool:
        """Return True for today's definition."""
        return self.table is self.today

    def new_name(self, attribute: str) -> str:
        """Return today's name of an attribute or a key column."""
        return self.renamed.get(attribute, attribute)

    def row_today(self, row: RowId) -> RowId | None:
        """Name the object by today's names; None where its class is gone."""
        if self.today is None:
            return None
        return RowId(self.today.schema, self.today.name, self.key_today(row.key))

    def key_today(self, key: str) -> str:
        """Write a key with today's names of its columns."""
        if not any(name in self.renamed for name in self.table.key):
            return key
        return format_parts((self.new_name(name), value) for name, value in parse(key).parts)

    def find_left_out(self, *, only: bool) -> frozenset[str]:
        """Name the columns without a present name: gone, if `only` present ones count, or with a
        name now another column's.
        """
        today = () if self.today is None else self.today.attributes
        taken = {*self.renamed.values(), *today}
        return frozenset(name for name in self.table.gone if only or name in taken)

    def by_new_names(self, *, only: bool) -> Table:
        """Describe the table by present names of its columns; `only` those still there."""
        left_out = self.find_left_out(only=only)
        columns = [
            replace(column, name=self.new_name(column.name))
            for column in self.table.columns
            if column.name not in left_out
        ]
        table = replace(self.table, columns=tuple(columns), gone=())
        if only and self.today:
            return replace(table, name=self.today.name, schema=self.today.schema)
        return table


class DefinitionSpan(Struct, frozen=True, kw_only=True, eq=False):
    """What events under the same definitions go by. `catalog` is what tables looked like; `former`
    are those definitions that are not today's, by the names of their classes then.
    """

    catalog: Catalog
    former: Mapping[FullName, Definition] = {}

    def by_names(self, changes: list[Change], names: FormerNames) -> tuple[list[Change], Catalog, list[Refusal]]:
        """Rename changes for an output; return also their tables and refusals for left-out columns."""
        if not self.former or names is FormerNames.OWN:
            return changes, self.catalog, []
        refusals: list[Refusal] = []
        renamed = [self.change_by_names(change, names, refusals) for change in changes]
        return [change for change in renamed if change is not None], self.catalog_by_names(names), refusals

    def catalog_by_names(self, names: FormerNames) -> Catalog:
        """Describe the tables of the changes by the names of an output: former ones first."""
        if not self.former or names is FormerNames.OWN:
            return self.catalog
        only = names is FormerNames.ONLY_NEW
        former = [definition.by_new_names(only=only) for definition in self.former.values()]
        # Of two tables with one name the former counts: changes of this span speak of it.
        taken = {*self.former, *((table.schema, table.name) for table in former)}
        others = [table for table in self.catalog if (table.schema, table.name) not in taken]
        return Catalog([*former, *others], case_sensitive=self.catalog.case_sensitive)

    def change_by_names(self, change: Change, names: FormerNames, refusals: list[Refusal]) -> Change | None:
        """Rename a change for an output, or return None; `refusals` get the left-out columns."""
        definition = self.former.get((change.row.schema, change.row.table))
        if definition is None or names is FormerNames.OWN:
            return change
        only = names is FormerNames.ONLY_NEW
        # A policy knows tables by today's names alone, and must not let pass what it does not know.
        if only and definition.today is None:
            note = f"{change.row.table} is gone, so no policy can say what may be published of it."
            refusals.append(Refusal(positions=change.positions, note=note, partial=True))
            return None
        left_out = definition.find_left_out(only=only)
        edits = tuple(
            replace(edit, column=definition.new_name(edit.column))
            for edit in change.edits
            if edit.column not in left_out
        )
        row = replace(change.row, key=definition.key_today(change.row.key))
        if only and definition.today is not None:
            row = replace(row, schema=definition.today.schema, table=definition.today.name)
        if len(edits) < len(change.edits) and change.op is not Op.DELETE:
            missing = ", ".join(dict.fromkeys(edit.column for edit in change.edits if edit.column in left_out))
            problem = f"{change.row.table} has no column {missing} any more"
            note = f"{problem}, so the change is published without."
            refusals.append(Refusal(positions=change.positions, note=note, partial=True))
            if not edits and change.op is Op.MODIFY:
                return None
        return replace(change, row=row, edits=edits)


class FormerRows:
    """Reads back what is asked for by former names, from the tables of now."""

    def __init__(self, reader: RowReader, span: DefinitionSpan) -> None:
        self._reader = reader
        self._former = span.former

    def rows(self, wanted: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, ReadBack]:
        """Read rows as every reader does; an object of a dropped class is missing."""
        asked: dict[RowId, frozenset[str]] = {}
        called: dict[RowId, list[RowId]] = {}
        for row, attributes in wanted.items():
            definition = self._former.get((row.schema, row.table))
            today: RowId | None = row
            names = attributes
            if definition is not None:
                today = definition.row_today(row)
                names = frozenset(map(definition.new_name, attributes))
            if today is None:
                continue
            # Two former names may mean one object of today, which is read once for both.
            asked[today] = asked.get(today, frozenset()) | names
            called.setdefault(today, []).append(row)
        rows_today = self._reader.rows(asked) if asked else {}
        return {
            row: self._by_former_names(row, row_today, wanted[row])
            for today, row_today in rows_today.items()
            for row in called[today]
        }

    def _by_former_names(self, row: RowId, row_today: ReadBack, attributes: frozenset[str]) -> ReadBack:
        definition = self._former.get((row.schema, row.table))
        if definition is None:
            return row_today
        values = row_today.row if isinstance(row_today, Unreadable) else row_today
        former = {}
        for name in definition.table.loggable:
            if name in attributes and definition.new_name(name) in values:
                former[name] = values[definition.new_name(name)]
        if isinstance(row_today, Unreadable):
            return replace(row_today, row=former)
        return former


class Definitions:
    """All definitions of the classes of a log that are known, today's among them."""

    def __init__(self, definitions: Iterable[Definition], catalog: Catalog) -> None:
        self._catalog = catalog
        self.known = ordered = tuple(sorted(definitions, key=lambda definition: definition.first))
        """The definitions in the order in which they began."""
        by_name: dict[str, list[Definition]] = {}
        of_classes = set[str]()
        for definition in ordered:
            of_classes |= self._class_names(definition.table)
        for definition in ordered:
            own = self._class_names(definition.table)
            # As in a catalog: what a class is known to be called means no other one, and no child.
            for name in self._names(definition.table) - (of_classes - own):
                by_name.setdefault(name, []).append(definition)
        self._last = ordered[-1].first if ordered else BEFORE_ALL_NUMBERS
        # Only names that ever meant something else: rows of all others need no search.
        self._lists: dict[str, list[Definition]] = {}
        for name, of_name in by_name.items():
            if len(of_name) > 1 or not of_name[0].current:
                self._lists[name] = of_name
        self._imaged: dict[str, dict[int, list[Definition]]] = {}
        self._called = frozenset(by_name)
        for definition in ordered:
            # Also by its name without a schema, where that means no other class.
            bare = {self._catalog.fold(definition.table.name)} - of_classes
            for name in self._class_names(definition.table) | bare:
                for number in definition.images:
                    self._imaged.setdefault(name, {}).setdefault(number, []).append(definition)
        self._having: dict[tuple[int, str, str | None, tuple[str, ...]], bool] = {}
        self._catalogs: dict[frozenset[int], Catalog] = {}
        self._identities: dict[int, Identities] = {}
        self._renamed: dict[tuple[FullName, int], Definition] = {}

    def __bool__(self) -> bool:
        """Return True if any definition ever differed from today's."""
        return bool(self._lists)

    def __reduce__(self) -> tuple[type[Definitions], tuple[tuple[Definition, ...], Catalog]]:
        """Send only the known definitions to another process; caches hold addresses in memory."""
        return Definitions, (self.known, self._catalog)

    @cached_property
    def former(self) -> tuple[Definition, ...]:
        """List the former definitions rows may have, always in the same order."""
        own = [definition for definition in self.known if not definition.current]
        # A row that asks for its whole object goes by today's definition, under the name of then.
        still_there = {definition.full_name: definition for definition in own if definition.today}
        return (*own, *map(self._under_former_name, still_there.values()))

    @cached_property
    def former_keys(self) -> Mapping[FullName, frozenset[frozenset[str]]]:
        """Map each class to all sets of columns its rows were ever known by, in present names."""
        keys: dict[FullName, frozenset[frozenset[str]]] = {}
        for definition in self.known:
            if definition.today is not None:
                name = definition.today.schema, definition.today.name
                key = frozenset(map(definition.new_name, definition.table.key))
                keys[name] = keys.get(name, frozenset()) | {key}
        return keys

    @property
    def images(self) -> bool:
        """Return True if rows of any table were images."""
        return bool(self._imaged)

    def has_images(self, table: str | None) -> bool:
        """Return True if rows of this table ever were images, by its name in the log."""
        return self._fold(table) in self._imaged

    def has_changed(self, table: str | None) -> bool:
        """Return True if rows under this name in the log ever meant another definition than today's."""
        return self._fold(table) in self._lists

    def knows(self, table: str | None) -> bool:
        """Return True if the history has a table, by its name in the log."""
        return self._fold(table) in self._called

    def image_columns(self, table: str | None, number: int) -> tuple[str, ...] | None:
        """Find the columns of an image beginning with this number; None if unknown."""
        known = self._imaged.get(self._fold(table), {}).get(number)
        return None if known is None else known[0].images[number]

    def _of_image(self, event: Event, number: int) -> Definition:
        """Find the newest definition possible for the row, with columns of the same meaning."""
        known = self._imaged[self._fold(event.table)][number]
        chosen = known[0]
        for definition in known:
            if definition.first <= event.position[0]:
                chosen = definition
        return chosen

    def span(self, former: Definition) -> DefinitionSpan:
        """Describe all tables at the time of a former definition."""
        return self._span({former.full_name: former})

    def concerns(self, events: Sequence[Event]) -> bool:
        """Return True if one of these events may have another definition than today's."""
        if not self._lists:
            return False
        # Cheap for the publisher's everyday: rows behind the latest change of a definition.
        if any(event.position[0] < self._last for event in events):
            return True
        # Also a new row may name what today's definition has not: a trigger of before wrote it.
        named = {(self._fold(event.table), event.column) for event in events if event.image is None}
        if any(self._find_definition(name, 2**63, column, None) is not None for name, column in named):
            return True
        images = [(event, event.image.number) for event in events if event.image is not None]
        return any(not self._of_image(event, number).current for event, number in images)

    def spans(self, events: Sequence[Event]) -> list[tuple[DefinitionSpan, list[Event]]]:
        """Split events into parts under the same definitions, each part in their order. The events of an
        object are in a later part where its table got another definition, and in the same where it did
        not, whatever became of others.
        """
        parts: list[tuple[dict[FullName, Definition], list[Event]]] = [({}, [])]
        reached: dict[tuple[FullName, str | None], int] = {}
        for event in events:
            definition, number = self._of(event), 0
            if definition is not None:
                # Never before the part that has the object's former events, and in the first one
                # behind it that has this definition of the table, or none yet.
                number = reached.get((definition.full_name, event.key), 0)
                while number < len(parts) and parts[number][0].get(definition.full_name, definition) is not definition:
                    number += 1
                if number == len(parts):
                    parts.append(({}, []))
                parts[number][0][definition.full_name] = definition
                reached[definition.full_name, event.key] = number
            parts[number][1].append(event)
        spans = [(self._span(chosen), of_part) for chosen, of_part in parts if of_part]
        return spans or [(self._span({}), [])]

    def runs(self, events: Iterable[Event]) -> Iterator[tuple[DefinitionSpan, int]]:
        """Count consecutive events of one object under the same definitions, for an object with more events
        than fit into memory.
        """
        chosen: dict[FullName, Definition] = {}
        count = 0
        for event in events:
            definition = self._of(event)
            if definition is not None and chosen.get(definition.full_name, definition) is not definition:
                yield self._span(chosen), count
                count = 0
            if definition is not None:
                chosen[definition.full_name] = definition
            count += 1
        yield self._span(chosen), count

    def pieces(self, decided: Iterable[tuple[DefinitionSpan, Change]]) -> Iterator[tuple[DefinitionSpan, list[Change]]]:
        """Changes, each with the span it was decided in, in pieces where tables look the same."""
        piece: list[Change] = []
        chosen: dict[FullName, Definition | None] = {}
        for span, change in decided:
            full_name = change.row.schema, change.row.table
            definition = span.former.get(full_name)
            if chosen.setdefault(full_name, definition) is not definition:
                yield self._span(chosen), piece
                piece, chosen = [], {full_name: definition}
            piece.append(change)
        yield self._span(chosen), piece

    def row_id(self, table: str | None, key: str | None, *, row_event: bool = False) -> RowId | None:
        """Identify the object of a row by former names; by today's where they are known."""
        for definition in reversed(self._lists.get(self._fold(table), ())):
            if definition.current:
                continue
            identities = self._identities.get(id(definition))
            if identities is None:
                catalog = Catalog([definition.table], case_sensitive=self._catalog.case_sensitive)
                identities = self._identities[id(definition)] = Identities(catalog)
            row = identities.row_id(table, key, row_event=row_event)
            if row is not None:
                return definition.row_today(row) or row
        return None

    def _of(self, event: Event) -> Definition | None:
        """Find the definition of an event; None if its table never had another."""
        name = self._fold(event.table)
        if event.image is not None:
            chosen = self._of_image(event, event.image.number)
            return None if chosen.current and name not in self._lists else chosen
        if name not in self._lists:
            return None
        last = self._lists[name][-1]
        written_under = self._find_definition(name, event.position[0], event.column, event.key)
        if written_under is None:
            return last
        if event.kind not in ROW_BACK or written_under.today is None:
            return written_under
        # What is read back stands there now, so it goes by today's definition.
        asked = last
        if last.table is not written_under.today or written_under.full_name != last.full_name:
            asked = self._under_former_name(written_under)
        key_names = _names_of(event.key)
        if self._knows(asked, name, None, key_names):
            return asked
        # A key column has another name today: the newest definition that has the former one. What
        # stands in the table now may be called by it, or be new since the row was written.
        for newer in reversed(self._lists[name]):
            is_of_class = newer.today is written_under.today and newer.first >= written_under.first
            if is_of_class and self._knows(newer, name, None, key_names):
                return newer
        return written_under

    def _under_former_name(self, definition: Definition) -> Definition:
        """Describe today's class under its former name."""
        today, then = definition.today, definition.table
        assert today is not None
        made = self._renamed.get((definition.full_name, id(today)))
        if made is None:
            table = replace(today, schema=then.schema, name=then.name, bare=then.bare)
            made = Definition(table=table, today=today)
            self._renamed[definition.full_name, id(today)] = made
        return made

    def _find_definition(self, name: str, number: int, column: str | None, key: str | None) -> Definition | None:
        """Find the definition in force for a row; None for the present one of its name."""
        of_name = self._lists.get(name)
        if of_name is None:
            return None
        index = 0  # before all of them it belongs to the first
        for index in range(len(of_name) - 1, -1, -1):
            if of_name[index].first <= number:
                break
        names = _names_of(key)
        if not self._knows(of_name[index], name, column, names):
            # Its transaction began before the definition, or the trigger was replaced later: the
            # nearest that knows what it names, older ones first.
            nearest = [*range(index - 1, -1, -1), *range(index + 1, len(of_name))]
            for other in nearest:
                if self._knows(of_name[other], name, column, names):
                    index = other
                    break
        chosen = of_name[index]
        return None if chosen.current else chosen

    def _knows(self, definition: Definition, name: str, column: str | None, key: tuple[str, ...]) -> bool:
        """Return True if a definition has the row's column and the columns of its key."""
        asked = id(definition), name, column, key
        known = self._having.get(asked)
        if known is None:
            catalog = Catalog([definition.table], case_sensitive=self._catalog.case_sensitive)
            naming = Naming(name, catalog.find(name) or TableMatch(definition.table), catalog)
            columns = {naming.folded(key_column) for key_column in key}
            known = not columns or columns in ({*naming.own_key}, {*naming.child_key})
            if known and column is not None:
                try:
                    naming.attribute(column)
                except DataError:
                    known = False
            self._having[asked] = known
        return known

    def _span(self, chosen: Mapping[FullName, Definition | None]) -> DefinitionSpan:
        former = {
            full_name: definition
            for full_name, definition in chosen.items()
            if definition is not None and not definition.current
        }
        if not former:
            return DefinitionSpan(catalog=self._catalog)
        # By identity, which is why none of this goes to another process.
        asked = frozenset(map(id, former.values()))
        catalog = self._catalogs.get(asked)
        if catalog is None:
            others = [table for table in self._catalog if (table.schema, table.name) not in former]
            tables = [definition.table for definition in former.values()]
            catalog = Catalog([*tables, *others], case_sensitive=self._catalog.case_sensitive)
            self._catalogs[asked] = catalog
        return DefinitionSpan(catalog=catalog, former=former)

    def _class_names(self, table: Table) -> set[str]:
        """List the names certain to mean a class."""
        names = (table.whole, table.name) if table.bare else (table.whole,)
        return set(map(self._catalog.fold, names))

    def _names(self, table: Table) -> set[str]:
        names = (table.name, *(child.name for child in table.children))
        with_schema = []
        if table.schema:
            with_schema = [
                form for name in names for form in (f"{table.schema}.{name}", write_name(table.schema, name))
            ]
        return {self._catalog.fold(name) for name in (*names, *with_schema)}

    def _fold(self, table: str | None) -> str:
        return self._catalog.fold((table or "").strip(" "))


def _names_of(key: str | None) -> tuple[str, ...]:
    """Name the columns of a table_key; none where it is malformed."""
    if key is None:
        return ()
    try:
        return tuple(name for name, _ in parse(key).parts)
    except KeySyntaxError:
        return ()
