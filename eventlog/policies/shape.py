"""What a table looks like at one step of a policy: steps change it, and actions are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.sql_types import Category
from eventlog.core.suggest import did_you_mean
from eventlog.core.view_columns import read_column_name


class Shape:
    """A table on its way through the steps. `needs` are source attributes that must be known of an
    object: each with the attributes whose changes ask for them, None where every change does.

    `hidden` are source attributes whose values nobody can read behind the steps so far, and
    `exposed` those that a place shows. `missed` are names that a step names and the table has not,
    and `had` what it has there, by the step's number.
    """

    def __init__(self, table: Table, catalog: Catalog | None = None) -> None:
        self.table = self.source = table
        self._catalog = catalog or Catalog()
        self.left_out = False
        self.needs: list[tuple[frozenset[str] | None, frozenset[str]]] = []
        self.missed: dict[int, frozenset[str]] = {}
        self.had: dict[int, tuple[str, ...]] = {}
        self.names = tuple(dict.fromkeys((table.class_name or table.name, table.name, table.whole)))
        self.hidden: set[str] = set()
        self.exposed: set[str] = set()
        self.spoken: set[str] = set()
        """The attributes that steps have named, by the names that they have now; `*` names none."""
        self._source = {name: name for name in table.loggable}
        """The attributes of the source by the names that they have now; what was added has none."""

    def other(self, name: str, where: str) -> Table:
        """Return another table as in its database.

        ConfigError if there is none, or its key is not a single column.
        """
        match = self._catalog.find(name)
        if match is None or match.child is not None:
            known = [table.whole for table in self._catalog]
            raise ConfigError(f"{where}: {name} is no table.", hint=did_you_mean(name, known))
        if len(match.table.key) != 1 or match.table.whole_row:
            hint = "Such a row cannot be named by a value."
            raise ConfigError(f"{where}: {name} has no key of one column.", hint=hint)
        return match.table

    def is_meant(self, patterns: Iterable[str]) -> bool:
        """Return True if a step with these classes is about the table."""
        patterns = tuple(patterns)
        if not patterns:
            return True
        return any(fnmatchcase(name, pattern) for name in self.names for pattern in patterns)

    def choose(self, patterns: Iterable[str], number: int) -> list[str]:
        """List the attributes named by a step in the table's order, key columns too."""
        patterns = tuple(patterns)
        known = tuple(self.table.loggable)
        self.had[number] = known
        named = {pattern: [name for name in known if fnmatchcase(name, pattern)] for pattern in patterns}
        self.spoken.update(set(patterns).intersection(known))
        self.missed[number] = frozenset(pattern for pattern, names in named.items() if not names)
        meant = {name for names in named.values() for name in names}
        return [name for name in known if name in meant]

    def category(self, name: str) -> Category:
        attribute = self.table.loggable.get(name)
        if attribute is None:
            return Category.STRING
        return attribute.column.category

    def hide(self, names: Iterable[str]) -> None:
        """Note that values of these attributes are hidden, or unreadable."""
        self.hidden.update(self._source[name] for name in names if name in self._source)

    def expose(self, names: Iterable[str]) -> None:
        """Note that values of these attributes are published, whatever becomes of them later."""
        self.exposed.update(source for name, source in self.plain.items() if name in names)

    @property
    def plain(self) -> dict[str, str]:
        """Map names here to readable attributes of the source."""
        return {name: source for name, source in self._source.items() if source not in self.hidden}

    def key_of(self, name: str) -> str | None:
        """Return the name of the attribute's key column; None if it is none."""
        attribute = self.table.loggable.get(name)
        # A child table's column of the same name is no part of the key.
        if attribute is None or attribute.child is not None or attribute.column.name not in self.table.key:
            return None
        return attribute.column.name

    def key_names(self, names: Iterable[str]) -> dict[str, str]:
        """Map names in keys to attributes, for key columns."""
        by_key_name: dict[str, str] = {}
        for name in names:
            native = self.key_of(name)
            if native is not None:
                # Rows of a view name it by the view's name, those of a table by its own.
                by_key_name |= {read_column_name(native).column: name, native: name}
        return by_key_name

    def refuse_key(self, names: Iterable[str], number: int, done: str) -> None:
        """Refuse a change to a key: it tells objects apart."""
        for name in names:
            if self.key_of(name) is not None:
                raise ConfigError(
                    f"Step {number} (do = {done!r}): {name} is a key column of {self.table.whole},"
                    " and objects are named by it.",
                    hint="do = 'hash' hides it and keeps objects apart; or leave the table out.",
                )

    def need(self, names: Iterable[str], *, asking: Iterable[str] | None) -> None:
        """Note attributes a step needs, at each change or if one of those `asking` changes."""
        needed = self._of_source(names)
        wanted_by = None if asking is None else self._of_source(asking)
        self.needs.append((wanted_by, needed))

    def _of_source(self, names: Iterable[str]) -> frozenset[str]:
        attributes = self.table.attributes
        return frozenset(self._source[name] for name in names if name in self._source and name in attributes)

    def drop(self, names: Iterable[str]) -> None:
        """Remove attributes from the table."""
        gone = frozenset(names)
        self.hide(gone)
        columns = tuple(column for column in self.table.columns if self.table.own_attribute(column).name not in gone)
        children = []
        for child in self.table.children:
            # The columns that name the parent stay: by them its rows are found.
            kept = [
                column
                for column in child.columns
                if column.name in child.parent_key or _child_name(child.name, column) not in gone
            ]
            children.append(replace(child, columns=tuple(kept)))
        left_out = tuple(attribute for attribute in self.table.left_out if attribute.name not in gone)
        self.table = replace(self.table, columns=columns, children=tuple(children), left_out=left_out)

    def rename(self, names: Mapping[str, str], class_name: str) -> None:
        """Rename attributes of the table, and its class."""
        self._source = {names.get(now, now): source for now, source in self._source.items()}
        self.spoken = {names.get(now, now) for now in self.spoken}
        columns = tuple(
            _call_column(column, names.get(self.table.own_attribute(column).name)) for column in self.table.columns
        )
        children = []
        for child in self.table.children:
            renamed = [_call_column(column, names.get(_child_name(child.name, column))) for column in child.columns]
            children.append(replace(child, columns=tuple(renamed)))
        left_out = tuple(
            replace(attribute, name=names.get(attribute.name, attribute.name)) for attribute in self.table.left_out
        )
        self.table = replace(self.table, columns=columns, children=tuple(children), left_out=left_out)
        if class_name:
            self.table = replace(self.table, class_name=class_name)

    def retype(self, names: Iterable[str], sql_type: str, *, refers: bool = False) -> None:
        """Change the type of attributes; with `refers` they go on naming objects."""
        meant = frozenset(names)

        def retype_column(column: Column, name: str) -> Column:
            if name not in meant:
                return column
            # A changed value is nothing that the database makes, and names no other object.
            references = column.references if refers else None
            return replace(column, type=sql_type, made=None, references=references)

        columns = tuple(retype_column(column, self.table.own_attribute(column).name) for column in self.table.columns)
        children = []
        for child in self.table.children:
            own = [retype_column(column, _child_name(child.name, column)) for column in child.columns]
            children.append(replace(child, columns=tuple(own)))
        self.table = replace(self.table, columns=columns, children=tuple(children))

    def add(self, name: str, sql_type: str) -> None:
        """Add an attribute to the table, or change the type of one."""
        self.spoken.add(name)
        if name in self.table.loggable:
            self.retype([name], sql_type)
        else:
            # In a view names say what a column is: this one is to be a plain one, whatever it is
            # called.
            if self.table.view:
                column = Column(name=f"sv_{name}", type=sql_type, called=name)
            else:
                column = Column(name=name, type=sql_type)
            self.table = replace(self.table, columns=(*self.table.columns, column))
        self._source.pop(name, None)


def _child_name(child: str, column: Column) -> str:
    return column.called or f"{child}.{column.name}"


def _call_column(column: Column, name: str | None) -> Column:
    if name is None:
        return column
    return replace(column, called=name)
