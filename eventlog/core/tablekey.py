"""The table_key grammar: `idu=1`, `pkey1=v1+pkey2="a+b"`.

    table-key  ::= identifier {"+" identifier}
    identifier ::= column "=" value

A value that holds one of `, ; ' + " = \\ < >` stands in double quotes, with `"` written `\\"` and
`\\` written `\\\\`. Blanks (U+0020) round a column name and round an unquoted value do not count,
so a value that begins or ends with a blank is quoted too. Nothing here does I/O; a log of a million
rows parses a million keys, hence the one-match path for the simple key that nearly all of them are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from eventlog.core.errors import KeySyntaxError

SPECIAL = ",;'+\"=\\<>"
simple = re.compile(r"""[^,;'+"=\\<> ]+=[^,;'+"=\\<> ]+""").fullmatch
"""Finds keys of one column that are written as their canonical form is: nearly all there are."""
# Also with a blank at an end, which would not count without quotes.
_needs_quotes = re.compile(r"""[,;'+"=\\<>]|^ | \Z""").search
_plain = re.compile(r"""[^,;'+"=\\<>]*""").match
# Stops before a backslash that escapes nothing, which is an error of its own.
_quoted = re.compile(r"""[^"\\]*(?:\\["\\][^"\\]*)*""").match
_blanks = re.compile(" *").match
_escaped = re.compile(r"\\(.)", re.DOTALL)

Parts = tuple[tuple[str, str], ...]


class TableKey(Struct, frozen=True, gc=False, eq=False):
    """A parsed key. Keys are equal when their columns and values are, however they were written."""

    text: str
    parts: Parts
    canonical: str
    """The key without needless blanks and quotes: names and order as they were written."""

    @classmethod
    def parse(cls, text: str) -> TableKey:
        """Read a key; raise KeySyntaxError with the column of the first wrong character."""
        return parse(text)

    @classmethod
    def of(cls, columns: Mapping[str, str] | Iterable[tuple[str, str]]) -> TableKey:
        """Makes a key from columns and values, in their order."""
        if isinstance(columns, Mapping):
            columns = columns.items()
        parts = tuple(columns)
        text = format_parts(parts)
        return cls(text, parts, text)

    @property
    def columns(self) -> dict[str, str]:
        """Map column names to values, in the order of the key."""
        return dict(self.parts)

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableKey) and self.parts == other.parts

    def __ne__(self, other: object) -> bool:
        return not self == other  # a Struct brings one of its own, which knows nothing of ours

    def __hash__(self) -> int:
        return hash(self.parts)


def parse(text: str) -> TableKey:
    """Read a key; raise KeySyntaxError with the column of the first wrong character."""
    if simple(text):
        name, _, value = text.partition("=")
        # Such a key is its own canonical form.
        return TableKey(text, ((name, value),), text)
    parts = _parse_slowly(text)
    return TableKey(text, parts, format_parts(parts))


def format_parts(parts: Iterable[tuple[str, str]]) -> str:
    """Writes columns and values as a key, quoting only where the grammar asks for it."""
    return "+".join([f"{name}={quote_value(value)}" for name, value in parts])


def quote_value(value: str) -> str:
    """Quote a value for a key, only where quotes are required."""
    # The backslash first, or those that are put before quotes would be doubled too.
    if _needs_quotes(value) is None:
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def arrange_key(key: TableKey, names: Mapping[str, str], fold: Callable[[str], str]) -> str | None:
    """Write the canonical key with the columns called and ordered as the values of `names`, whose keys
    are folded.

    Return None when the key does not name exactly these columns, each once.
    """
    # Nearly all keys: one column, spelled as the catalog does, so that nothing is to be arranged.
    if len(key.parts) == 1 == len(names) and key.parts[0][0] in names.values():
        return key.canonical
    values: dict[str, str] = {}
    for spelled, value in key.parts:
        name = names.get(fold(spelled))
        if name is None or name in values:
            return None
        values[name] = value
    if len(values) == len(names):
        return format_parts((name, values[name]) for name in names.values())
    return None


def _parse_slowly(text: str) -> Parts:
    # A dictionary, for a column that is there twice would make two values of one.
    parts: dict[str, str] = {}
    at = 0
    while True:
        start = at
        name, at = _name(text, at)
        if name in parts:
            raise KeySyntaxError(f"the column {name!r} is there twice", text=text, column=start + 1)
        parts[name], at = _value(text, at)
        if at == len(text):
            return tuple(parts.items())
        at += 1  # the "+"


def _name(text: str, at: int) -> tuple[str, int]:
    end = _end(_plain(text, at))
    name = text[at:end].strip(" ")
    if end == len(text):
        problem = "'=' is missing after the column name"
        if not name:
            problem = "a column name and '=' are missing"
        raise KeySyntaxError(problem, text=text, column=end + 1)
    if text[end] != "=":
        raise KeySyntaxError(f"{text[end]!r} cannot be in a column name", text=text, column=end + 1)
    if not name:
        raise KeySyntaxError("a column name is missing before '='", text=text, column=end + 1)
    return name, end + 1


def _value(text: str, at: int) -> tuple[str, int]:
    after_blanks = _end(_blanks(text, at))
    if text.startswith('"', after_blanks):
        closing = _end(_quoted(text, after_blanks + 1))
        if closing == len(text):
            problem = "the quote that opens here is never closed"
            raise KeySyntaxError(problem, text=text, column=after_blanks + 1)
        if text[closing] == "\\":
            # The match ended before it, so what follows is neither a quote nor a backslash.
            raise KeySyntaxError('only \\" and \\\\ can follow a backslash', text=text, column=closing + 1)
        value = _escaped.sub(r"\1", text[after_blanks + 1 : closing])
        end = _end(_blanks(text, closing + 1))
        problem = "after the closing quote comes '+' or the end, not {!r}"
    else:
        end = _end(_plain(text, at))
        value = text[at:end].strip(" ")
        problem = "{!r} needs double quotes around the value"
    if end < len(text) and text[end] != "+":
        raise KeySyntaxError(problem.format(text[end]), text=text, column=end + 1)
    return value, end


def _end(match: re.Match[str] | None) -> int:
    assert match is not None  # these patterns match the empty string
    return match.end()
