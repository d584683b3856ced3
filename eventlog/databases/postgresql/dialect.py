"""PostgreSQL: its constants and capabilities, its keys and its types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from eventlog.databases.postgresql.any_bytes import read_any_bytes
from eventlog.databases.postgresql.keys import ArrayLookup
from eventlog.databases.postgresql.pooled import is_behind_pooler
from eventlog.databases.postgresql.search_path import fix_search_path
from eventlog.databases.postgresql.times import read_far_times
from eventlog.databases.postgresql.types import TYPES
from eventlog.sql.ddl import Ddl
from eventlog.sql.dialect import Dialect
from eventlog.sql.driver import DatabaseDriver
from eventlog.sql.error_codes import NAME_IS_TAKEN, ErrorCodes

if TYPE_CHECKING:
    from sqlalchemy import Engine

_EXACT = frozenset({"smallint", "integer", "bigint", "uuid", "date", "timestamp", "boolean"})
"""Types that have one text for one value, and none of the characters that a table_key quotes."""


def _options(_given: Iterable[str]) -> set[str]:
    """Return the options of the installed libpq."""
    from psycopg.pq import Conninfo

    return {option.keyword.decode() for option in Conninfo.get_defaults()}


def _prepare(engine: Engine) -> None:
    """Prepare an engine: its sessions read any bytes, and take no name of others for the server's."""
    read_any_bytes(engine)
    fix_search_path(engine)


POSTGRESQL = Dialect(
    name="postgresql",
    room=__package__ or "",
    lookup=ArrayLookup(),
    types=TYPES,
    oldest_server=(13,),
    quick_glue=" # ",
    identifier_bytes=63,
    open_catalog=True,
    now="(CURRENT_TIMESTAMP AT TIME ZONE 'UTC')",
    later="({now} + INTERVAL '{seconds} seconds')",
    user="SESSION_USER",
    transaction="txid_current()",
    context="left(current_setting('eventlog.context', true), 400)",
    transaction_guess="a row's transaction is the one that wrote it last:"
    " a savepoint and a requeue count as one of their own",
    backslash=("E'", r"\\"),
    plain_types=_EXACT | {"bytea", "time", "money"},
    unquoted_types=_EXACT | {"money"},
    type_texts={
        "money": "text_of_money",
        "inet": "text_of_output",
        **dict.fromkeys(("char", "character", "bpchar"), "text_of_char"),
    },
    key_texts=dict.fromkeys(("char", "character", "bpchar"), "text_of_string"),
    driver=DatabaseDriver(
        other_names=frozenset({"postgres"}),
        jdbc_addresses=((r"jdbc:postgresql://([^?]+)", r"postgresql+psycopg://\1"),),
        module="psycopg",
        extra="postgres",
        copying_driver="psycopg",
        url_options=_options,
        lone_statements=True,
        behind_pooler=is_behind_pooler,
        prepare=_prepare,
        read_far=read_far_times,
        program_argument="fallback_application_name",  # the URL and PGAPPNAME come first
        connect_arguments={
            # Seconds; the last one counts milliseconds.
            "connect_timeout": 10,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            "tcp_user_timeout": 30_000,
        },
        lease_arguments={"keepalives_idle": 1, "keepalives_interval": 1 / 3, "tcp_user_timeout": 2_000},
    ),
    ddl=Ddl(
        hides_virtual_columns=True,
        ddl_limits=("SET LOCAL lock_timeout = '{seconds}s'", ""),
        partial_indexes=True,
        # The identity keeps numbers apart; a key would be one more index for every writer.
        log_has_key=False,
        transactional_ddl=True,
        fixed_types=_EXACT
        | {"bytea", "time", "text", "varchar", "char", "numeric", "money", "timestamp with time zone", "json", "jsonb"},
    ),
    errors=ErrorCodes(
        lock_codes=frozenset({"55P03"}),
        deadlock_codes=frozenset({"40P01"}),
        timeout_codes=frozenset({"57014"}),
        # Data, an index, something inside, input or output, a file that is gone.
        damage_codes=frozenset({"XX001", "XX002", "XX000", "58030", "58P01"}),
        denied_codes=frozenset({"42501"}),
        advice={"42710": NAME_IS_TAKEN},
        # A table or a view; a function.
        name_codes=frozenset({"42P01", "42883"}),
        # libpq tells no SQLSTATE of a connection that failed; a server that speaks another language is
        # tried again.
        refusals=(
            *("authentication failed for user", "no password supplied", "no pg_hba.conf entry"),
            *("pg_hba.conf rejects", "does not exist", "is not permitted to log in"),
            "permission denied for database",
        ),
        # The server ended a transaction that was idle, or took too long.
        passing_codes=frozenset({"25P03", "25P04"}),
    ),
)
