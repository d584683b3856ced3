"""Text of any length as one parameter, which some databases take only when it is bound as a LOB."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import Connection, TextClause, bindparam, event, text
from sqlalchemy.types import UserDefinedType


class LongText(UserDefinedType[str]):
    """A parameter whose text may be longer than the database's longest string."""

    cache_ok = True


def with_long_text(query: str, *names: str) -> TextClause:
    """The query with those of its parameters that are called so bound as long text."""
    asked = [name for name in names if re.search(rf":{name}\b", query)]
    return text(query).bindparams(*(bindparam(name, type_=LongText()) for name in asked))


def bind_long_texts(connection: Connection) -> None:
    """Tells the driver of long texts before it executes; SQLAlchemy does so only for statements
    that it writes itself.
    """
    clob = getattr(connection.dialect.loaded_dbapi, "CLOB", None)

    def tell(
        _connection: Any,
        cursor: Any,
        _statement: str,
        _parameters: Any,
        context: Any,
        _many: bool,
    ) -> None:
        binds = getattr(context.compiled, "binds", {})
        long = [name for name, bound in binds.items() if isinstance(bound.type, LongText)]
        if long:
            cursor.setinputsizes(**dict.fromkeys(long, clob))

    event.listen(connection, "before_cursor_execute", tell)
