"""The drawn grammars: what can be read along the rails of table_key is what the parser takes, and XDS is drawn whole."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import masks
from docs.grammars import SCHEMA, TABLE_KEY, definitions
from eventlog.core.errors import KeySyntaxError
from eventlog.core.tablekey import TableKey
from tests.support.shares import met, shares

DRAWN = definitions()

SPECIAL = ",;'+\"=\\<>"
plain = st.characters(exclude_characters=SPECIAL, exclude_categories=["Cs", "Cc", "Z"])
WORDS = {
    "any but , ; ' + \" = \\ < >": plain,
    'any but " \\': st.characters(exclude_characters='"\\', exclude_categories=["Cs"]),
    "column": st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True),
}


def along(part: Any) -> st.SearchStrategy[str]:
    """Texts that are read along the rails of a diagram."""
    kind = type(part).__name__
    if kind == "Word":
        known = WORDS.get(part.text)
        return known if known is not None else along(TABLE_KEY[part.text]) if part.name else st.just(part.text)
    if kind == "Line":
        return st.tuples(*map(along, part.parts)).map("".join)
    if kind == "Either":
        return st.one_of(*(st.just("") if one is None else along(one) for one in part.parts))
    between = "" if part.between is None else part.between.text
    return st.lists(along(part.part), min_size=1, max_size=4).map(between.join)


@shares(parsed=0.4)
@given(along(TABLE_KEY["table-key"]))
def test_what_is_drawn_is_what_is_parsed(text: str) -> None:
    try:
        TableKey.parse(text)
    except KeySyntaxError as error:
        complaint = str(error)
    else:
        complaint = ""
    met(parsed=not complaint)
    # The picture does not say that a column may stand there once.
    assert not complaint or re.search("twice|again|once", complaint)


@given(along(TABLE_KEY["value"]), st.sampled_from(SPECIAL))
def test_what_is_not_drawn_is_not_parsed(value: str, special: str) -> None:
    with pytest.raises(KeySyntaxError):
        TableKey.parse(f"idu={value}x{special}")


def test_every_definition_of_xds_is_drawn_and_names_only_what_is_drawn() -> None:
    schema = SCHEMA.read_text()
    assert len(DRAWN) == schema.count("<define ")
    named = {word.text for part in DRAWN.values() for word in _words(part) if word.name}
    assert named <= set(DRAWN)
    assert {f"<{name}" for name in ("nds", "add", "modify", "delete", "status")} <= {
        word.text for part in DRAWN.values() for word in _words(part)
    }


def _words(part: Any) -> list[Any]:
    if part is None:
        return []
    if type(part).__name__ == "Word":
        return [part]
    if type(part).__name__ == "Again":
        return [*_words(part.part), *_words(part.between)]
    return [word for one in part.parts for word in _words(one)]


def test_the_mask_that_is_drawn_is_the_one_that_is_written() -> None:
    drawn = masks.picture()
    assert masks.COLUMNS.index("fname") == 8  # seven header columns come first
    assert ">00 05 " in drawn
    assert ">0500 " in drawn
    assert "byte 1 = 0x05" in drawn
    assert drawn.count('<rect class="set"') == len(masks.CHANGED)
