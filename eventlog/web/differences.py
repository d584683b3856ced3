"""A document beside the one that its object had before, line by line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Final

from msgspec import Struct

from eventlog.explain.rows import FormerDocument

MOST_ROWS: Final = 400
"""Of a document that is compared; a longer one is shown as it is."""

Pieces = tuple[tuple[str, bool], ...]
"""A line in pieces: each text, and whether the other side has another one there."""

_words = re.compile(r"\w+|\s+|[^\w\s]").findall
_event = re.compile(r' event-id="[^"]*"')
_breaks = re.compile(r"(?<=>)(?=<(?:add-value|remove-value|remove-all-values)\b)")
_ends = re.compile(r"(?<=>)(?=</(?:modify-attr|add-attr)>)")


class ComparedLine(Struct, frozen=True, kw_only=True):
    """A line of each document; None where that document has no such line."""

    former: Pieces | None
    present: Pieces | None
    is_changed: bool = True


class DocumentDifference(Struct, frozen=True, kw_only=True):
    """The former document's first row, and both documents line by line."""

    row: int
    lines: tuple[ComparedLine, ...]


def compare_documents(former: FormerDocument | None, present: str | None) -> DocumentDifference | None:
    """Compare two documents of an object; None where there are not two, or one is very long."""
    if former is None or present is None:
        return None
    before, after = spread(former.document), spread(present)
    if max(len(before), len(after)) > MOST_ROWS:
        return None
    return DocumentDifference(row=former.record_id, lines=tuple(_lines(before, after)))


def spread(document: str) -> list[str]:
    """Break a document into lines that can be compared: a value each, as people write XML."""
    return _ends.sub("\n  ", _breaks.sub("\n    ", document)).splitlines()


def _lines(before: Sequence[str], after: Sequence[str]) -> Iterator[ComparedLine]:
    # A document has an id of its own, which says nothing about its object.
    bare = [[_event.sub("", line) for line in lines] for lines in (before, after)]
    for kind, first, first_end, second, second_end in _steps(*bare):
        pairs = zip_longest(before[first:first_end], after[second:second_end])
        for left, right in pairs:
            if kind == "equal":
                yield ComparedLine(former=((left, False),), present=((right, False),), is_changed=False)
            elif left is None or right is None:
                yield ComparedLine(former=_whole(left), present=_whole(right))
            else:
                former, present = _pieces(left, right)
                yield ComparedLine(former=former, present=present)


def _steps(before: Sequence[str], after: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    # Not the library's guess at what is rare: in a document of few lines each of them counts.
    return SequenceMatcher(None, before, after, autojunk=False).get_opcodes()


def _whole(line: str | None) -> Pieces | None:
    return None if line is None else ((line, True),)


def _pieces(left: str, right: str) -> tuple[Pieces, Pieces]:
    """Part two lines where they differ."""
    words, others = _words(left), _words(right)
    former: list[tuple[str, bool]] = []
    present: list[tuple[str, bool]] = []
    for kind, first, first_end, second, second_end in _steps(words, others):
        differs = kind != "equal"
        if first_end > first:
            former.append(("".join(words[first:first_end]), differs))
        if second_end > second:
            present.append(("".join(others[second:second_end]), differs))
    return tuple(former), tuple(present)
