"""Text of any length as one parameter: some databases take long text only from a parameter that is bound as a LOB."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import TextClause, bindparam, text
from sqlalchemy.types import UserDefinedType


class LongText(UserDefinedType[str]):
    """A parameter whose text may be longer than the database's longest string."""

    cache_ok = True

    def get_dbapi_type(self, dbapi: Any) -> Any:
        return getattr(dbapi, "CLOB", None)


def with_long_text(query: str, *names: str) -> TextClause:
    """The query with those of its parameters that are called so bound as long text."""
    asked = [name for name in names if re.search(rf":{name}\b", query)]
    return text(query).bindparams(*(bindparam(name, type_=LongText()) for name in asked))
