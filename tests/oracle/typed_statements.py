"""Oracle's statements for the typed check: those of the folder with the fragments that fill them, and triggers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from msgspec import Struct

from eventlog.capture.column_sql import is_unseen
from eventlog.compare.tables import canonical_sql
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.dialect import texts
from tests.oracle.generated import TABLES, installation, loads, queries, triggers, whole
from tests.oracle.plsql import expressions_of, parts_of
from tests.oracle.typed import Check
from tests.oracle.typed_schema import Table, catalog, kind_of, plain, tables_made

SAMPLE: Final = {
    "IDU": "number",
    "FNAME": "text",
    "CODE": "text",
    "LASTS": "interval",
    "PHOTO": "raw",
    "ACTIVE": "boolean",
    "RATIO": "number",
    "SALARY": "number",
    "BORN": "moment",
    "STARTS": "text",
    "SEEN": "moment",
    "CHANGED": "moment",
    "SCHEMA_NAME": "text",
}
"""The columns of tables of others that samples in the files speak of."""
GATHERED: Final = {"NOTED": "list", "PLACE": "number", "KIND": "number", "ROW_KEY": "text", "COLUMN_CALLED": "text"}
"""What a package gathers for the log."""
ROWS: Final = {"NOTED": {"COUNT": "number"}, "MISTAKE": {"NAME": "text", "LINE": "number", "TEXT": "text"}}
FILLED: Final = {
    "ahead": "parked_ahead",
    "reason": "list_reason",
    "note": "list_note",
    "until": "lock_until",
    "row_range": "in_range",
    "past": "in_past",
    "since": "list_since",
    "transaction": "transaction_written",
}
"""Holes that other queries fill."""
_triggers = re.compile(
    r"text_of_|quoted$|differs|sets$|holds$|parent_is_there|log_row|image_|by_event|keep_|function|after_trigger|stands$"
    r"|transaction_declared|parked_ahead|compound_trigger|row_trigger|drop_|run_|session$|make_durable|one_moment"
)
"""What is a part of a trigger, which is checked as a whole, or no query."""


class Statement(Struct, frozen=True, kw_only=True):
    """A statement of SQL, what its names mean besides tables, and where it comes from."""

    name: str
    text: str
    variables: Mapping[str, str] = {}
    aliases: Mapping[str, Table] = {}

    def check(self) -> Check:
        return Check(tables(), self.variables, self.aliases).statement(self.text)


@cache
def tables() -> dict[str, Table]:
    """All tables that a statement may speak of."""
    described = [(table.name, table.columns) for table in TABLES]
    described += [(child.name, child.columns) for table in TABLES for child in table.children]
    theirs = {
        ORACLE.report_name(table): {ORACLE.report_name(one.name): kind_of(one.type) for one in columns}
        for table, columns in described
    }
    made = tables_made(text for _, text in installation())
    return {**theirs, **made, **catalog(), "USR": {**SAMPLE, **theirs["USR"]}}


def of_folder() -> Iterator[Statement]:
    """Give the queries of the folder, with their samples and with what fills their holes in the program."""
    log = {**tables()["EVENT_LOG"], "EVENTLOG_ORIGIN": "text"}  # as the log of a stream has it
    aliases = {**dict.fromkeys(("ENTRY", "WAITING"), log), "KEPT": tables()["EVENT_LOG_OUTCOME"]}
    aliases |= dict.fromkeys(("N", "O", "FOUND", "STORED", "USR"), SAMPLE)
    for name, text in [*queries(), *_filled()]:
        if not _triggers.match(name) and "event_log_parked ahead" not in text:
            for part in parts_of(text):
                yield Statement(name=name, text=part, variables={**SAMPLE, **log}, aliases=aliases)


def _filled() -> Iterator[tuple[str, str]]:
    """Fill holes with the queries that fill them when the program runs."""
    known = texts(ORACLE)
    for name, sample in known.items():
        text = sample
        for hole, filling in FILLED.items():
            pieces = re.split(rf"/\* {hole} \*/(?:\([^()]*\)|event_log_parked|'[^']*')?", text)
            text = known[filling].join(pieces)
        if text == sample:
            continue
        bare = re.sub(r"/\*\s*[a-z][a-z0-9_]*\s*\*/", "", text)
        yield f"{name}, filled", whole(name, bare)


def of_loads() -> Iterator[Statement]:
    """Give what full loads ask."""
    for name, text in loads():
        yield Statement(name=name, text=text)


def of_triggers() -> Iterator[Statement]:
    """Give the statements and the expressions of triggers and their packages."""
    for name, text in triggers():
        if not text.startswith(("CREATE OR REPLACE PACKAGE BODY", "DECLARE", "BEGIN")):
            continue
        variables = GATHERED | dict(_declared(text))
        for part in [*parts_of(text), *expressions_of(text)]:
            yield Statement(name=name, text=part, variables=variables, aliases=ROWS)


_parameter = re.compile(
    r'^    (\w+) ((?:"(?:[^"]|"")*"|[\w$#]+)(?:\.(?:"(?:[^"]|"")*"|[\w$#]+))+)%TYPE|\b(\w+) (?:IN OUT NOCOPY )?'
    r"(VARCHAR2|PLS_INTEGER|NUMBER|BOOLEAN|CLOB)\b",
    re.MULTILINE,
)
_name = re.compile(r'"(?:[^"]|"")*"|[\w$#]+')


def _declared(package: str) -> Iterator[tuple[str, str]]:
    for parameter, column, variable, kind in _parameter.findall(package):
        if column:
            *_, table, name = [plain(one) for one in _name.findall(column)]
            yield parameter.upper(), tables()[table].get(name, "any")
        else:
            yield variable.upper(), kind_of(kind)


def of_values() -> Iterator[Statement]:
    """Give what reads, writes and compares a value of each type."""
    for table in TABLES:
        stands = ORACLE.qualify(table.schema, table.name)
        for column in table.columns:
            name = f"found.{ORACLE.quote(column.name)}"
            selected = ORACLE.lookup.select_value(ORACLE, name, column)
            texts_of = [selected, ORACLE.lookup.length(ORACLE, name, column) or "1"]
            if not is_unseen(ORACLE, column):
                texts_of.append(canonical_sql(ORACLE, name, column, column.type))
            for place, expression in enumerate(texts_of):
                yield Statement(
                    name=f"{table.name}.{column.name} {place}", text=f"SELECT {expression} FROM {stands} found"
                )
