"""Databases with the encoding SQL_ASCII: the server keeps bytes, and nobody says which letters they are.

They are read as UTF-8. Bytes that are none become lone surrogates, by which the rules know the one row that they
cannot read. The session speaks Latin-1, in which a server takes any bytes for letters; driver and server pass them on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sqlalchemy import Engine

ENCODING: Final = "SQL_ASCII"
TEXTS: Final = ("bpchar", "name", "text", "varchar", '"char"')


def read_any_bytes(engine: Engine) -> None:
    """Let each session of the engine read and write any bytes, if its database keeps them."""
    from sqlalchemy import event

    usual = engine.dialect.connect

    def open_session(*positional: Any, **named: Any) -> Any:
        session: Any = usual(*positional, **named)
        if keeps_any_bytes(session):
            session.execute("SET client_encoding TO 'LATIN1'")
            session.commit()
            _teach(session)
            # Not before: each statement of any other database would be looked at for nothing.
            if not event.contains(engine, "before_cursor_execute", spell):
                event.listen(engine, "before_cursor_execute", spell, retval=True)
        return session

    def spell(
        connection: Any, _cursor: Any, query: str, parameters: Any, _context: Any, _many: bool
    ) -> tuple[str, Any]:
        """Spells a query so that Latin-1 makes UTF-8 of it."""
        if query.isascii() or not keeps_any_bytes(connection.connection.driver_connection):
            return query, parameters
        return query.encode("utf-8", "surrogateescape").decode("latin-1"), parameters

    # SQLAlchemy's event for this keeps other listeners from being asked.
    engine.dialect.connect = open_session  # type: ignore[method-assign]  # of this engine's dialect alone


def keeps_any_bytes(session: Any) -> bool:
    """Return True if the session's database has no encoding; only psycopg tells it."""
    told = getattr(getattr(session, "info", None), "parameter_status", None)
    return told is not None and told("server_encoding") == ENCODING


def _teach(session: Any) -> None:
    """Let the driver read and write text with any bytes, as UTF-8."""
    from psycopg.types import string

    def dump(_self: Any, text: str) -> bytes:
        if "\0" in text:
            string.StrDumper.dump(_self, text)  # which refuses it
        return text.encode("utf-8", "surrogateescape")

    def load(_self: Any, stored: Any) -> str:
        return str(stored, "utf-8", "surrogateescape")

    # The last one is that of texts whose type nobody says.
    for usual in (string.StrBinaryDumper, string.StrDumper, string.StrDumperUnknown):
        session.adapters.register_dumper(str, type(usual.__name__, (usual,), {"dump": dump}))
    for reader in (string.TextLoader, string.TextBinaryLoader):
        taught = type(reader.__name__, (reader,), {"load": load})
        for kind in TEXTS:
            session.adapters.register_loader(kind, taught)
    # The number stands for all types that nobody knows.
    session.adapters.register_loader(0, type("UnknownLoader", (string.TextLoader,), {"load": load}))
