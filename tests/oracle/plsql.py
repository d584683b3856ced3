"""The SQL inside blocks of PL/SQL, and the expressions, as statements of SQL that a typed check can read."""

from __future__ import annotations

import re
from collections.abc import Iterator

_opaque = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"")
_expression = re.compile(r"BEGIN\s+IF found = (.*) THEN\s+NULL;\s+END IF;\s+END;", re.DOTALL)
_sql = re.compile(r"\b(?:MERGE|INSERT INTO|UPDATE|DELETE FROM|SELECT|WITH)\b[^;]*", re.DOTALL)


_opened = re.compile(r"\b(?:ELS)?IF |:= |\bnote\(noted, ")
"""What stands before an expression of PL/SQL."""


def expressions_of(block: str) -> Iterator[str]:
    """Give the expressions of a block of PL/SQL, each as a query; what is handed to `note` as several columns."""
    hidden = _hide(block)
    for match in _opened.finditer(hidden):
        end = _end(hidden, match.end(), " THEN" if "IF" in match[0] else ";")
        text = block[match.end() : end].strip()
        yield f"SELECT CASE WHEN {text} THEN 1 END FROM dual" if "IF" in match[0] else f"SELECT {text} FROM dual"


def _hide(text: str) -> str:
    return _opaque.sub(lambda match: " " * len(match[0]), text)


def _end(hidden: str, start: int, ending: str) -> int:
    """Find where an expression ends: at these characters outside of parentheses, or at one that it did not open."""
    depth = 0
    for place in range(start, len(hidden)):
        depth += {"(": 1, ")": -1}.get(hidden[place], 0)
        if depth < 0 or (depth == 0 and hidden.startswith(ending, place)):
            return place
    return len(hidden)


def parts_of(text: str) -> Iterator[str]:
    """Give the statements of SQL that a text is or holds."""
    found = _expression.fullmatch(text.strip())
    if found:
        yield f"SELECT {found[1]} FROM dual"
    elif re.match(r"(?:BEGIN|DECLARE|CREATE OR REPLACE|IF)\b", text):
        yield from _statements(text)
    elif text.startswith("WITH FUNCTION"):
        yield text[text.index("END;\nSELECT") + len("END;\n") :]
    elif re.match(r"(?:SELECT|WITH|INSERT|UPDATE|DELETE|MERGE)\b", text):
        yield from (part.strip() for part in text.split(";\n"))


def _statements(block: str) -> Iterator[str]:
    """Give what begins as SQL does, up to a semicolon or to the end of a loop's query."""
    hidden = _hide(block)
    for match in _sql.finditer(hidden):
        text = block[match.start() : _end(hidden, match.start(), ";")].strip()
        if not re.match(r"(?:UPDATE|INSERT) (?:OR|ON)\b", text):
            yield re.sub(r"\bINTO \w+ FROM\b", "FROM", text) if text.startswith("SELECT") else text
