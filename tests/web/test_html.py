"""Markup: whatever a text holds, a browser reads it as that text and as nothing else."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from jinja2 import UndefinedError
from markupsafe import Markup
from msgspec.structs import replace

from eventlog.care.listing import Cursor, Filters, Listing
from eventlog.care.rows import LogRow
from eventlog.core.model import Status
from eventlog.core.plural import count_words
from eventlog.web.addresses import address
from eventlog.web.drawing import environment
from eventlog.web.pages import draw_live_overview, draw_message, draw_row, draw_rows
from eventlog.web.texts import make_visible, short_id
from tests.support.examples import examples
from tests.web.states import LOOK, READING, ROW, explained
from tests.web.visiting import HOSTILE, bare

texts = st.text() | st.sampled_from(HOSTILE) | st.text(alphabet="<>&\"'/= scriptonload!-[]")
plain = st.text(alphabet=st.characters(min_codepoint=0x20, exclude_categories=["Cs"], exclude_characters="\x7f"))


class Reader(HTMLParser):
    """What a browser would make of a piece of HTML: its tags with their attributes, and its text."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


TAGS = frozenset({"i", "a", "option", "p", "code", "b"})
"""Elements that depend on whether a text is there, and which."""


def _listed(row: LogRow, filters: Filters) -> str:
    return draw_rows(Listing(rows=(row,), further=Cursor(before=3)), filters, LOOK, first=False)


def _attributes(made: str) -> set[str]:
    return {name for _, attributes in Reader(made).tags for name in attributes}


def drawn(template: str, **facts: object) -> str:
    return environment().from_string('{% import "parts.html" as parts %}' + template).render(facts)


@given(texts)
def test_no_text_becomes_an_element_or_an_attribute(text: str) -> None:
    read = Reader(drawn('<p title="{{ text }}">{{ text }}<b>{{ text | value }}</b></p>', text=text))
    assert [tag for tag, _ in read.tags] == ["p", "b", "bdi"]
    assert set(read.tags[0][1]) == {"title"}


@pytest.mark.parametrize("look", ["value", "value_if", "short", "ident"])
@given(text=texts)
def test_a_text_of_the_database_is_shown_with_pictures_of_its_control_characters(look: str, text: str) -> None:
    read = Reader(environment().from_string(f"{{{{ text | {look} }}}}").render(text=text))
    assert {tag for tag, _ in read.tags} <= {"bdi", "span"}
    cut = text if len(text) <= 100 else f"{text[:100]}…"
    assert read.text == make_visible({"short": cut, "ident": short_id(text)}.get(look, text))


@pytest.mark.parametrize("field", ROW.__struct_fields__[1:-3])
@given(texts)
@examples(10)  # each draws four pages
def test_nowhere_does_a_text_of_the_log_become_more_than_text(field: str, text: str) -> None:
    assume(field != "status" or text not in set(Status))  # a letter that has a meaning brings buttons
    row, plain_row = (replace(ROW, **{field: value}) for value in (text, "x"))
    filters = Filters(key=text, table=text, text=text, reason=text, statuses=text)
    plainly = Filters(key="x", table="x", text="x", reason="x", statuses="x")
    for made, expected in (
        (draw_row(row, explained(row, 2), LOOK), draw_row(plain_row, explained(plain_row, 2), LOOK)),
        (_listed(row, filters), _listed(plain_row, plainly)),
    ):
        assert {tag for tag, _ in Reader(made).tags} <= {tag for tag, _ in Reader(expected).tags} | TAGS
        assert _attributes(made) <= _attributes(expected) | {"selected", "aria-current"}


@given(plain | st.sampled_from(HOSTILE))
def test_a_text_is_read_as_it_was(text: str) -> None:
    read = Reader(drawn('<p title="{{ text }}">{{ text }}</p>', text=text))
    assert (read.text, read.tags[0][1]["title"]) == (text, text)


@given(st.text(alphabet=st.characters(max_codepoint=0x20) | st.characters(categories=["Cs"]), min_size=1))
def test_what_cannot_be_seen_or_written_is_shown(text: str) -> None:
    made = drawn("{{ text }}", text=text)
    assert made.encode()  # half characters have no bytes
    assert not any(character < " " and character not in "\t\n" for character in made)


@given(st.text(alphabet=st.characters(categories=["Cs", "Ll"]), min_size=1))
def test_a_row_with_half_a_character_in_its_key_has_a_page(text: str) -> None:
    assert address("rows", text, key=text).isascii()
    row = replace(ROW, table_key=text)
    assert draw_row(row, explained(row, 1), LOOK).encode()


@given(texts, texts)
def test_an_address_stays_on_this_page(path: str, asked: str) -> None:
    made = address("rows", path.encode("utf-8", "replace").decode(), text=asked.encode("utf-8", "replace").decode())
    assert made.startswith("/rows/")
    assert not made.startswith("//")
    assert set(made).isdisjoint("<>\"' ")


def test_markup_is_not_escaped_again_and_null_is_no_text() -> None:
    assert drawn("{{ parts.badge(none) }}{{ nothing }}{{ 3 }}{{ ' & ' }}", nothing=None) == (
        '<span class="badge other"><b>NULL</b> ignored</span>3 &amp; '
    )
    assert drawn("{{ none | value }}{{ 'NULL' | value }}") == '<i class="null">NULL</i><bdi>NULL</bdi>'
    assert drawn('<a href="{{ to }}">a</a>', to="/b?c=1&d=2") == '<a href="/b?c=1&amp;d=2">a</a>'
    assert make_visible(Markup("<b>\0</b>")) == "<b>\0</b>"
    assert (count_words(1), count_words(1000), count_words(0, "trigger")) == ("1 row", "1,000 rows", "0 triggers")


def test_a_name_that_is_missing_is_an_error() -> None:
    environment.cache_clear()  # what a server's thread has made would not count as tested
    with pytest.raises(UndefinedError, match="'nobody' is undefined"):
        drawn("{{ nobody }}")


def test_the_first_cell_of_a_row_names_it() -> None:
    made = bare(draw_live_overview(READING))
    assert (
        '<th scope="row"><a href="/output?name=files+%2Fsrv%2Fout"><bdi>files out</bdi></a></th><td><span class="good">up to date</span></td><td>…</td>'
        in made
    )
    assert "<caption>Where documents go</caption>" in made
    assert "<p>no</p>" in draw_message("Oh", "no", LOOK)
