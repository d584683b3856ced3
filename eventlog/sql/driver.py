"""The driver of a database: where it comes from, and what it needs, can do, or must be told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct


class DatabaseDriver(Struct, frozen=True, kw_only=True, eq=False):
    """The driver that the extra of one database brings, and its URLs."""

    other_names: frozenset[str] = frozenset()
    """How URLs of it begin that other tools write, and SQLAlchemy does not know."""
    jdbc_addresses: tuple[tuple[str, str], ...] = ()
    """Patterns of addresses that programs in Java have, each with the URL that they become, without the login."""
    module: str | None = None
    """The module of the driver that the extra brings; None where Python brings one."""
    extra: str | None = None
    doubled_sign: str = ""
    """The sign that SQLAlchemy tells doubled where a column's name has it."""
    untaught_types: frozenset[str] = frozenset()
    """Types with arguments that SQLAlchemy may not know."""
    lob_parameters: bool = False
    """A text longer than the longest string must be bound as a LOB."""
    untaught_words: frozenset[str] = frozenset()
    """Words that newer servers reserve and SQLAlchemy may not know, in lower case."""
    stores_any_bytes: bool = False
    """A text may be any bytes, at which the driver stumbles unless it is told not to."""
    copying_driver: str | None = None
    """The driver through which rows can be had by COPY."""
    lone_statements: bool = False
    """Statements that are transactions of their own are two round trips cheaper than in one."""
    behind_pooler: Callable[[Any], bool] | None = None
    """Whether a pooler, which gives each transaction another session, is behind a driver's connection."""
    is_database: Callable[[Path], bool] | None = None
    """Says whether a file is one of an embedded database."""
    prepare: Callable[[Any], None] | None = None
    """Teaches an engine what its driver does not know."""
    read_far: Callable[[Any, BaseException], bool] | None = None
    """Has a driver's session read values that Python has not as texts, after this error; says whether that may help."""
    latin_driver: str | None = None
    """A driver that would send a password in Latin-1 to a server that keeps it in UTF-8."""
    url_options: Callable[[Iterable[str]], set[str]] | None = None
    """All options that a URL may have, of these; None where the driver's parameters tell them."""
    login_package: str | None = None
    """What a driver may need besides itself to log in."""
    connect_arguments: Mapping[str, int] = {}
    """What keeps a connection that nobody answers on from being waited for, as the driver says."""
    lease_arguments: Mapping[str, float] = {}
    """Which of those are shorter with a short lease, and how much of them is a second of it."""
    answer_argument: str | None = None
    """What the driver calls the seconds after which it no longer waits for an answer."""
    program_argument: str | None = None
    """What the extra's driver calls the program of a session, where its connect takes one."""
    names_sessions: bool = False
    """The driver says of a session which program it is, and what it does, where a DBA looks."""
    limits_calls: bool = False
    """The driver ends a call that takes too long, where a session limits nothing itself."""
