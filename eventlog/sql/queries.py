"""Loads named SQL from the folder of a database: `statement(dialect, "waiting", log="event_log")`.

A query begins with the line `-- name: purpose` and goes on to the next such line; other comment lines are for its
readers and are left out. A hole is a comment of one word before the text it replaces, `/* log */event_log`, so that
the file stays SQL which an editor can check and a DBA can run. What databases share stands in `common`; a database's
folder has what is different there, and nothing for a query that it has no use for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import EventlogError, InstallError
from eventlog.sql.dialect import Dialect
from eventlog.sql.names import STANDARD, LogNames

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

COMMON: Final = "common"
"""The folder of what databases share."""

BODY_QUOTE: Final = "$eventlog$"
"""What stands on both sides of what a database keeps as a text: nothing that is filled in may end it."""

_header = re.compile(r"^-- ([a-z][a-z0-9_]*): .+$", re.MULTILINE)
_comment_line = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_sample = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|:?[\w$.]+|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)"""
_hole = re.compile(rf"/\*\s*([a-z][a-z0-9_]*)\s*\*/(?:{_sample})?")


def statement(dialect: Dialect, query: str, **holes: str) -> str:
    """The text of a named query with its holes filled; values that fill a hole are SQL already, and names quoted.

    No text for a query that this database lacks and another one has; `offers` asks for that.
    """
    text = texts(dialect.name).get(query)
    if text is None:
        if query not in known():
            raise EventlogError(f"There is no query {query} in eventlog/sql.")
        return ""
    return filled(text, holes, origin=f"{dialect.name}/{query}")


def offers(dialect: Dialect, query: str) -> bool:
    """Whether the database has this query."""
    return query in texts(dialect.name)


def filled(text: str, holes: Mapping[str, str], *, origin: str) -> str:
    """The text with every hole replaced, sample and all; a hole that nothing fills is an error."""
    if BODY_QUOTE in text and any(BODY_QUOTE in value for value in holes.values()):
        raise InstallError(
            f"A name or a condition holds {BODY_QUOTE}, which would end the text of a trigger.", hint="Change it."
        )

    def fill(match: re.Match[str]) -> str:
        try:
            return holes[match[1]]
        except KeyError:
            raise EventlogError(f"{origin} has the hole {match[1]} and nothing to fill it with.") from None

    return _hole.sub(fill, text)


def log_holes(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """What fills the holes that nearly every query has: log, outcomes, marks, and the ten columns by standard name."""
    tables = {"log": names.table, "outcomes": names.outcomes, "marks": names.marks}
    qualified = {hole: dialect.qualified(names.schema, table) for hole, table in tables.items()}
    own = {} if names.transaction is None else {"transaction_number": dialect.quoted(names.transaction)}
    return qualified | own | {standard: dialect.quoted(names.column(standard)) for standard in STANDARD}


def transaction_behind(dialect: Dialect, holes: Mapping[str, str]) -> str:
    """What asks for the transaction of a row behind its other columns: nothing, where the log has no column for it."""
    return statement(dialect, "transaction_told", **holes) if "transaction_number" in holes else ""


def number_holes(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """What a writer says of the record_id: nothing, unless a sequence numbers the log."""
    if names.sequence is None or dialect.next_number is None:
        return {"number_name": "", "number": ""}
    drawn = dialect.next_number.format(sequence=dialect.qualified(names.schema, names.sequence))
    return {"number_name": f", {dialect.quoted(names.column('record_id'))}", "number": f", {drawn}"}


@cache
def texts(database: str) -> dict[str, str]:
    """Every query of a database by name: those of its folder, and of `common` what the folder has not."""
    return _in_folder(COMMON) | _in_folder(database)


@cache
def known() -> frozenset[str]:
    """The names of all queries that any database has."""
    return frozenset().union(*(_in_folder(folder.name) for folder in _folders()))


def _folders() -> Iterator[Traversable]:
    for folder in files("eventlog.sql").iterdir():
        if folder.is_dir() and any(file.name.endswith(".sql") for file in folder.iterdir()):
            yield folder


@cache
def _in_folder(folder: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for file in sorted(files("eventlog.sql").joinpath(folder).iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        for name, text in split(file.read_text(encoding="utf-8")):
            if name in found:
                raise EventlogError(f"The query {name} stands twice in eventlog/sql/{folder}/.")
            found[name] = text
    return found


def split(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each query in a file, without comment lines and the semicolon at the end."""
    headers = list(_header.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    for header, end in zip(headers, ends, strict=True):
        body = _comment_line.sub("", text[header.end() : end]).strip()
        # A slash on the last line ends PL/SQL, whose own semicolons belong to it.
        yield header[1], body[:-2].rstrip() if body.endswith("\n/") else body.removesuffix(";").rstrip()
