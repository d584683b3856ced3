"""SQL expressions about the columns of a row, in one dialect: their text, a key, what changed, what
a condition says.

And what is the same for every row that a statement logs: a constant of the trigger where it may
have one, else its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from eventlog.core.model import Kind, Status
from eventlog.core.schema import Column, Made
from eventlog.core.sql_types import Category, bare_type, longest
from eventlog.sql.dialect import Dialect, offers, statement
from eventlog.sql.lookup import value_text
from eventlog.sql.names import LogNames

PREFIX: Final = "eventlog_"
"""Begins the names of constants, which must not be those of columns that a condition speaks of."""


def constants(dialect: Dialect, names: LogNames) -> dict[str, tuple[str, str]]:
    """Name what is the same in all rows of a statement, each with its column of the log and its value in SQL."""
    same = {
        "now": (names.column("event_time"), dialect.now),
        "user": (names.column("perpetrator"), dialect.user),
        "waiting": (names.column("status"), dialect.literal(Status.NEW)),
    }
    if names.context is not None:
        sessions = dialect.qualify(names.schema, names.sessions)
        same["session"] = (names.context, dialect.context.format(sessions=sessions))
    return same | {f"kind_{kind:d}": (names.column("event_type"), f"{kind:d}") for kind in Kind}


def row_holes(dialect: Dialect, names: LogNames, *, declared: bool = False) -> dict[str, str]:
    """Fill the holes of every row of the log alike; `declared` means by the constants of a trigger.

    The session's context and the record_id have none, unless the log has a column for the one, and a sequence
    for the other.
    """
    values = {what: value for what, (_, value) in constants(dialect, names).items()}
    if declared and offers(dialect, "constant"):
        values = {what: PREFIX + what for what in values}
    holes = {what: values[what] for what in ("now", "user", "waiting")}
    holes |= dict.fromkeys(("context_name", "context_value", "number_name", "number"), "")
    if names.context is not None:
        holes |= {"context_name": f", {dialect.quote(names.context)}", "context_value": f", {values['session']}"}
    if names.sequence is not None and dialect.ddl.next_number is not None:
        drawn = dialect.ddl.next_number.format(sequence=dialect.qualify(names.schema, names.sequence))
        holes |= {"number_name": f", {dialect.quote(names.column('record_id'))}", "number": f", {drawn}"}
    return holes


def declarations(dialect: Dialect, names: LogNames, body: str) -> str:
    """Declare the constants of a trigger's body, in the types of the log's columns.

    So they are computed, and checked by the log's domains, once a statement instead of once a row.
    """
    if not offers(dialect, "constant"):
        return ""
    mentioned = set(re.findall(rf"\b{PREFIX}(\w+)", body))
    log = dialect.qualify(names.schema, names.table)
    lines = []
    for what, (own, value) in sorted(constants(dialect, names).items()):
        if what in mentioned:
            column = f"{log}.{dialect.quote(own)}"
            lines.append(statement(dialect, "constant", name=PREFIX + what, column=column, value=value) + ";")
    return "\n".join(lines)


def join_texts(dialect: Dialect, parts: Iterable[str]) -> str:
    """Concatenate texts in SQL."""
    before, between, after = dialect.concat
    return before + on_lines(dialect, parts, between) + after


def on_lines(dialect: Dialect, parts: Iterable[str], between: str) -> str:
    """Put parts on one line, or one a line if that would be too long for the shell."""
    line = between.join(parts := list(parts))
    if dialect.ddl.line_characters is None or len(line) < dialect.ddl.line_characters // 4:
        return line
    return f"{between.rstrip()}\n".join(parts)


def is_unseen(dialect: Dialect, column: Column) -> bool:
    """Return True if a trigger cannot read values of the column's type or length."""
    name = bare_type(column.type)
    limit = dialect.ddl.unseen_lengths.get(name)
    return name in dialect.ddl.unseen_types or (limit is not None and (longest(column.type) or 0) > limit)


def is_same_in_each_session(dialect: Dialect, columns: Iterable[Column]) -> bool:
    """Return True if the texts of all these columns are the same in every session."""
    for column in columns:
        plain = bare_type(column.type) in dialect.ddl.fixed_types
        if column.made is not None or not (plain or column.category is Category.TIMESTAMP):
            return False
    return True


def parameters(what: str, columns: Sequence[Column]) -> dict[str, str]:
    """Name the parameters of a procedure for columns: `old_1`, `new_1` or `sets_1`.

    They are numbered, so that none is called like a column and all are short.
    """
    return {column.name: f"{what}_{number}" for number, column in enumerate(columns, 1)}


def compare(dialect: Dialect, query: str, column: Column, before: str, after: str) -> str:
    """Write the condition `differs`, for which NULL is a value like others, or `same_key`."""
    plain = dialect.plain_types is None or bare_type(column.type) in dialect.plain_types
    # Comparing values of a type that somebody made would run that owner's operators (decision 13),
    # so texts are compared.
    if plain and column.made is not Made.TYPE:
        return statement(dialect, query, before=before, after=after)
    old_text, new_text = value_text(dialect, column, before), value_text(dialect, column, after)
    return statement(dialect, f"{query}_as_text", before=old_text, after=new_text)


class Row(Struct, frozen=True, kw_only=True):
    """A row as SQL can speak of it: by the name `alias`, a column at a time; `columns` are all that
    it has.

    `parameters` are the names under which a procedure is given their values, where it does not see
    the row itself.
    """

    dialect: Dialect
    alias: str
    columns: tuple[Column, ...] = ()
    parameters: Mapping[str, str] = {}

    def value(self, column: Column) -> str:
        """Write SQL for the value, in a built-in type."""
        if column.formula is not None:
            held = [base for base in self.columns if base.formula is None]
            selected = [f"{self.read_value(base)} AS {self.dialect.quote(base.name)}" for base in held]
            names = ", ".join(selected)
            # Where an outer join found no row, the formula might make a value of NULLs: without a
            # key there is none.
            keys = [base for base in held if base.key is not None]
            there = [statement(self.dialect, "present", value=self.read_value(base)) for base in keys]
            condition = ""
            if there:
                condition = f" WHERE {' AND '.join(there)}"
            return f"(SELECT {column.formula} FROM (SELECT {names}) AS stored{condition})"
        if column.made is None:
            return self.read_value(column)
        query = "made_type" if column.made is Made.TYPE else "made_domain"
        return statement(self.dialect, query, value=self.read_value(column), type=column.type)

    def match_value(self, column: Column) -> str:
        """Write the value for a comparison by a look-up."""
        # A domain has the operators of the type that it stands for, so its own value finds the row
        # by an index.
        if column.made is Made.DOMAIN:
            return self.read_value(column)
        return self.value(column)

    def read_value(self, column: Column) -> str:
        if column.name in self.parameters:
            return self.parameters[column.name]
        return f"{self.alias}.{self.dialect.quote(column.name)}"

    def text(self, column: Column) -> str:
        return value_text(self.dialect, column, self.value(column))

    def key(self, columns: Iterable[Column], names: Iterable[str] | None = None) -> str:
        """Write the row's key, as `tablekey` does; `names` are the parent's key columns for a child's row."""
        held = list(columns)
        of_child = names is not None
        parts: list[str] = []
        for name, column in zip(names or [column.name for column in held], held, strict=True):
            separator = "+" if parts else ""
            text = value_text(self.dialect, column, self.value(column), in_key=True)
            type_names = {bare_type(column.type), column.category.value}
            # A type that somebody made may be called like a number and still have a text with
            # special characters.
            if column.made is Made.TYPE or not type_names & self.dialect.unquoted_types:
                # Bytes are logged in a code whose characters are special, whatever they are.
                value = text if column.category is Category.OCTET else self.value(column)
                text = statement(self.dialect, "quoted", text=text, value=value)
            elif column.nullable and not of_child:
                # A key of NULL would fail the writer. What is logged of a child names a parent.
                text = f"coalesce({text}, '')"
            parts += [self.dialect.literal(f"{separator}{name}="), text]
        return join_texts(self.dialect, parts)

    def list(self, columns: Iterable[Column]) -> str:
        """List the columns by their bare names, for a condition; without unreadable ones."""
        seen = [column for column in columns if not is_unseen(self.dialect, column)]
        named = (f"{self.value(column)} AS {self.dialect.quote(column.name)}" for column in seen)
        return on_lines(self.dialect, named, ", ")
