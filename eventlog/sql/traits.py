"""What a database is asked about itself: constants and capabilities, and how names and texts stand in its SQL.

Quoting is SQLAlchemy's, so that reserved words are as up to date as it is; it is imported only when something is quoted.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from eventlog.core.sql_types import bare_type

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect as Compiler
    from sqlalchemy.sql.compiler import IdentifierPreparer


class Dialect(Struct, frozen=True, kw_only=True):
    """One database. The folder called `name` holds what belongs to it; expressions are SQL text in its own words."""

    name: str
    identifier_bytes: int
    case_sensitive: bool = False
    """Whether undelimited identifiers are."""
    oldest_server: tuple[int, ...] = ()
    """The oldest version that the tests run on; empty where only one was tried."""
    embedded: bool = False
    """The database is a file of this machine, which connecting would make."""
    lone_writer: bool = False
    """One transaction writes at a time; others wait for it."""
    schemas: bool = True
    """Tables stand in schemas; elsewhere the setting `source.schema` names one in associations."""
    transition_tables: bool = False
    """Statement triggers see all rows of their statement."""
    truncate_triggers: bool = False
    hides_virtual_columns: bool = False
    """A trigger cannot read a column that is computed when it is read; its formula stands for it."""
    instead_of_triggers: bool = False
    qualified_in_triggers: bool = True
    """A trigger's text may name the schema of the tables it writes to."""
    triggers_in_schemas: bool = False
    """A trigger's own name may have a schema; elsewhere it goes with its table."""
    comments_on_triggers: bool = False
    """The marker is a comment beside the trigger; elsewhere it is one in the trigger's text."""
    tells_roughly: bool = False
    """The catalog may tell a trigger's text with a quote once that is there twice, and '?' for characters beyond 16 bits."""
    procedural_triggers: bool = False
    """One trigger stands for all events and is replaced in place; its conditions hold no queries, so those are asked
    before; and it must not look at a table that the same statement changes."""
    unseen_types: frozenset[str] = frozenset()
    """Types of columns whose values a trigger cannot read; they are read back."""
    untaught_types: frozenset[str] = frozenset()
    """Types with arguments that SQLAlchemy may not know."""
    type_texts: Mapping[str, str] = {}
    """Types whose text is written by a fragment of their own."""
    passing_codes: frozenset[int | str] = frozenset()
    """Codes of errors that waiting may cure, where the driver's class does not say so."""
    denied_codes: frozenset[int | str] = frozenset()
    """Codes of errors that a right would cure."""
    lob_parameters: bool = False
    """A text longer than the longest string must be bound as a LOB."""
    reserved: frozenset[str] = frozenset()
    """Words that need quotes in the language of triggers, besides those of SQL."""
    untaught_words: frozenset[str] = frozenset()
    """Words that newer servers reserve and SQLAlchemy may not know, in lower case as it has them."""
    next_number: str | None = None
    """The next number of a sequence, where a log may have one instead of numbering its rows itself."""
    trigger_bytes: int | None = None
    """How long a trigger's text may be."""
    upper_case: bool = False
    """Names that nobody quotes are upper-case."""
    row_names: tuple[str, str] = ("OLD", "NEW")
    """What a row trigger calls the row before and after."""
    concat: tuple[str, str, str] = ("", " || ", "")
    """What stands before, between and after texts that are joined."""
    script_end: str = ";"
    """Ends a statement in a script, also one that has semicolons inside."""
    declared_constants: bool = False
    """A trigger may declare constants in the types of a table's columns, which conditions and rows then share."""
    partial_indexes: bool = False
    log_has_key: bool = True
    """Whether the log we make has a primary key; without one, uniqueness rests on the identity (measured on PostgreSQL)."""
    transactional_ddl: bool = False
    begin_ddl: str | None = None
    """Opens a transaction where the driver would let DDL run outside of one."""
    ddl_limits: tuple[str, str] = ("", "")
    """Bounds the waiting for locks of what follows, and takes that back where the end of the transaction does not."""
    comments_survive: bool = True
    """A comment in a trigger's text stays there, whatever client made it; elsewhere the marker is a statement."""
    script_commit: str = ""
    """Ends a script whose last statements are not on disk yet."""
    script_start: str = ""
    """Begins a script, where the database's shell must be told how its statements end."""
    domains: bool = False
    """Types may have conditions of their own, which cost a writer a twentieth of what a table's CHECK costs (measured)."""
    checks_identity: bool = True
    """A CHECK may speak of a column that numbers itself."""
    passing_errors: frozenset[int] = frozenset()
    """Numbers of the errors that waiting may cure, where the driver's classes do not tell them from the others."""
    locked_errors: frozenset[int] = frozenset()
    """Those of them that say that another process has locked the whole database."""
    lone_statements: bool = False
    """Statements that are transactions of their own are two round trips cheaper than one in a transaction."""
    refusals: tuple[str, ...] = ()
    """Words with which a server turns somebody away at its door, where its driver has no number for that."""
    latin_driver: str | None = None
    """A driver that would send a password in Latin-1 to a server that keeps it in UTF-8."""
    login_package: str | None = None
    """What a driver may need besides itself to log in."""
    connect_arguments: Mapping[str, int] = {}
    """What keeps a connection that nobody answers on from being waited for, in the words of the driver."""
    lease_arguments: Mapping[str, float] = {}
    """Which of those are shorter with a short lease, and how much of them there is to a second of it."""
    answer_argument: str | None = None
    """What the driver calls the seconds after which it no longer waits for an answer."""
    limits_calls: bool = False
    """The driver ends a call that takes too long, where a session limits neither statements nor locks."""
    now: str
    """The current time as event_time holds it: UTC wherever the database can say it."""
    user: str = "NULL"
    """Who is connected, as perpetrator holds it."""
    backslash: tuple[str, str] | None = ("'", "\\")
    """How a string that holds a backslash begins, and how the backslash is written in it; None: the session decides."""
    plain_types: frozenset[str] | None = None
    """Types whose values differ exactly when their texts do, others being compared as text; None: all of them."""
    unquoted_types: frozenset[str] = frozenset()
    """Types whose text never needs quotes in a table_key."""
    settled_types: frozenset[str] = frozenset()
    """Types whose text does not depend on the session's settings; a trigger on others brings settings of its own."""

    def marked(self, marker: str) -> str:
        """The marker as it stands beside a trigger, or inside one."""
        if self.comments_on_triggers:
            return self.literal(marker)
        return f"/* {marker} */" if self.comments_survive else f"DO 'eventlog {b64encode(marker.encode()).decode()}';"

    def told(self, source: str) -> str:
        """A trigger's text such that the one that was sent and the one that the catalog tells are the same."""
        return re.sub("'+", "'", re.sub("[^\0-\uffff]", "?", source)) if self.tells_roughly else source

    def quoted(self, name: str) -> str:
        """The identifier as it stands in SQL, in quotes where it needs them."""
        if name.upper() in self.reserved:
            return f'"{name.upper() if name.islower() else name}"'
        if name.lower() in self.untaught_words:
            return _preparer(self.name).quote_identifier(name)
        return _preparer(self.name).quote(self.normalised(name) if name.isupper() else name)

    def beside(self, name: str, neighbour: str) -> str:
        """A name of ours in the case of the name that it stands beside."""
        return name.upper() if self.upper_case and neighbour.isupper() else name

    def unseen(self, sql_type: str) -> bool:
        """Whether a trigger cannot read values of this type."""
        return bare_type(sql_type) in self.unseen_types

    def qualified(self, schema: str | None, name: str) -> str:
        """A table's name as it stands in SQL, with its schema if there is one."""
        return f"{self.quoted(schema)}.{self.quoted(name)}" if schema else self.quoted(name)

    def literal(self, text: str) -> str:
        """The text as a SQL string, whatever the session thinks of backslashes."""
        if self.backslash is None and "\\" in text:
            return f"CONVERT(X'{text.encode().hex()}' USING utf8mb4)"
        opening, backslash = self.backslash if self.backslash and "\\" in text else ("'", "\\")
        return opening + text.replace("'", "''").replace("\\", backslash) + "'"

    def reported(self, name: str) -> str:
        """The name as the database itself reports it, which is how it stands in a table_key."""
        compiler = _compiler(self.name)
        return compiler.denormalize_name(name) if compiler.requires_name_normalize else name

    def normalised(self, name: str) -> str:
        """The name as SQLAlchemy wants it for one that the database reports; undoes `reported`."""
        compiler = _compiler(self.name)
        return compiler.normalize_name(name) if compiler.requires_name_normalize else name

    def shortened(self, name: str) -> str:
        """The name, or a part of it with a hash of all of it where the database limits the length."""
        if len(name.encode()) <= self.identifier_bytes:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        kept = name.encode()[: self.identifier_bytes - 9].decode(errors="ignore")
        return f"{kept}_{digest}"


@cache
def _compiler(name: str) -> Compiler:
    from sqlalchemy.engine import make_url

    # Named parameters have no percent sign, so that names keep theirs; `text()` doubles it where a driver wants that.
    kind: Callable[..., Compiler] = make_url(f"{name}://").get_dialect()
    return kind(paramstyle="named")


@cache
def _preparer(name: str) -> IdentifierPreparer:
    return _compiler(name).identifier_preparer
