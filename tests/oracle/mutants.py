"""Statements broken in ways that are certainly wrong, to try the checker itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

_opaque = re.compile(r"/\*.*?\*/|--[^\n]*|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", re.DOTALL)
"""What no mutation touches: comments, strings and quoted names."""
_breakages = {
    "an opening parenthesis dropped": (r"\(", ""),
    "a closing parenthesis dropped": (r"\)", ""),
    "a comma doubled": (r",", ", ,"),
    "a comparison doubled": (r" = ", " = = "),
    "a concatenation cut": (r"\|\|", "|"),
    "the first word misspelt": (r"\A[A-Z]+(?= [A-Za-z])", "XYZZY"),
    "WHERE misspelt": (r"\bWHERE\b", "WHREE"),
    "THEN dropped": (r"\bTHEN\b", ""),
    "the last END dropped": (r"\bEND\b(?!.*\bEND\b)", ""),
    "VALUES misspelt": (r"\bVALUES\b", "VALEUS OF"),
    "FOR EACH ROW misspelt": (r"\bFOR EACH ROW\b", "FOR EVERY ROW"),
    "a semicolon inside dropped": (r";(?=\s*(?:END|ELSE|ELSIF|IF|INSERT)\b)", ""),
    "IS NULL cut": (r"\bIS NULL\b", "IS"),
    "JSON_TABLE cut": (r"\bCOLUMNS\b", "COLUMNS COLUMNS"),
}


def mutants(statement: str) -> Iterator[tuple[str, str]]:
    """What was broken, and the statement with that broken at one place; every place once."""
    hidden = _opaque.sub(lambda match: "\0" * len(match[0]), statement)
    for what, (pattern, replacement) in _breakages.items():
        for match in re.finditer(pattern, hidden, re.DOTALL):
            yield what, statement[: match.start()] + replacement + statement[match.end() :]
    strings = [match for match in _opaque.finditer(statement) if match[0].startswith("'")]
    if strings:
        last = strings[-1].end() - 1
        yield "a string never closed", statement[:last] + statement[last + 1 :]
