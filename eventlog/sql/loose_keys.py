"""Keys whose columns take texts that differ for equal: a collation without case, CITEXT, blanks that do not count."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from string import ascii_lowercase
from typing import Any, Final

from sqlalchemy import Connection

from eventlog.core.sql_types import PADDED_TYPES, bare_type
from eventlog.sql.access import answers
from eventlog.sql.dialect import dialect_of
from eventlog.sql.homes import find_home


def find_loose_key(
    connection: Connection,
    name: str,
    schema: str | None,
    keys: Iterable[str],
    types: Mapping[str, str],
) -> tuple[str, str] | None:
    """Find the first key column taking different values of its source for equal, and by which rule.

    `types` are those of the source's columns, by name in lower case. None if there is none.
    """
    folded = {key.casefold() for key in keys}
    for column, collation, only_blanks, _ in _loose_columns(connection, name, schema):
        # Values of CHAR come without blanks at their end, so none is lost where only they do not count.
        never_padded = bare_type(types.get(column.casefold(), "")) in PADDED_TYPES
        if column.casefold() in folded and not (only_blanks and never_padded):
            return str(column), str(collation)
    return None


def find_alike(
    connection: Connection, name: str, schema: str | None, known: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Find in what texts differ that the columns of a table take for one, as `Column.alike` says it.

    The server itself is asked how its collation compares, so nothing here knows one by its name; `known` keeps
    the answers.
    """
    found = {}
    for column, _, only_blanks, compared in _loose_columns(connection, name, schema):
        if compared and compared not in known:
            known[compared] = _ask_alike(connection, compared)
        # Blanks at the end of a CHAR alone count for nobody.
        if compared or not only_blanks:
            found[str(column)] = known.get(compared, ("more",))
    return found


def _ask_alike(connection: Connection, compared: str) -> tuple[str, ...]:
    """Ask in what texts may differ that are equal; `compared` is SQL for a text, with ? in its place."""

    def is_one(one: str, other: str) -> bool:
        holes = {
            "one": compared.replace("?", dialect.literal(one), 1),
            "other": compared.replace("?", dialect.literal(other), 1),
        }
        return bool(answers(connection, "are_alike", **holes)[0][0])

    dialect = dialect_of(connection)
    found = []
    # Also letters that a language takes together are one in whatever case, or the text is another one.
    if all(is_one(_PAIRS, written) for written in (_PAIRS.upper(), _PAIRS.title(), _PAIRS.title().swapcase())):
        found.append("case")
    if is_one("a", "a "):
        found.append("blanks")
    return tuple(found) or ("more",)


_PAIRS: Final = "-".join(map("".join, product(ascii_lowercase, repeat=2)))


def _loose_columns(connection: Connection, name: str, schema: str | None) -> Sequence[Any]:
    dialect = dialect_of(connection)
    schema = schema or find_home(connection)
    owner = None if schema is None else dialect.report_name(schema)
    return answers(connection, "loose_columns", {"schema": owner, "table": dialect.report_name(name)})
