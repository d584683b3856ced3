"""Markup: whatever a text holds, a browser reads it as that text and as nothing else."""

from __future__ import annotations

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from eventlog.web.html import Markup, address, counted, element, link, markup, table, value
from tests.web.visiting import HOSTILE

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


@given(texts)
def test_no_text_becomes_an_element_or_an_attribute(text: str) -> None:
    read = Reader(element("p", text, element("b", value(text)), title=text))
    assert [tag for tag, _ in read.tags] == ["p", "b", "bdi"]
    assert set(read.tags[0][1]) == {"title"}


@given(plain | st.sampled_from(HOSTILE))
def test_a_text_is_read_as_it_was(text: str) -> None:
    read = Reader(element("p", text, title=text))
    assert (read.text, read.tags[0][1]["title"]) == (text, text)


@given(st.text(alphabet=st.characters(max_codepoint=0x20) | st.characters(categories=["Cs"]), min_size=1))
def test_what_cannot_be_seen_or_written_is_shown(text: str) -> None:
    made = markup(text)
    assert made.encode()  # half characters have no bytes
    assert not any(character < " " and character not in "\t\n" for character in made)


@given(texts, texts)
def test_an_address_stays_on_this_page(path: str, asked: str) -> None:
    made = address("rows", path.encode("utf-8", "replace").decode(), text=asked.encode("utf-8", "replace").decode())
    assert made.startswith("/rows/")
    assert not made.startswith("//")
    assert set(made).isdisjoint("<>\"' ")


def test_attributes_are_named_as_in_html_and_left_out_when_they_say_nothing() -> None:
    made = element("input", type="checkbox", aria_label="Row", checked=True, disabled=False, value=None, class_="a")
    assert made == '<input type="checkbox" aria-label="Row" checked class="a">'


def test_markup_is_not_escaped_again_and_null_is_no_text() -> None:
    assert markup([element("b", "<"), Markup("<hr>"), None, 3, " & "]) == "<b>&lt;</b><hr>3 &amp; "
    assert (value(None), value("NULL")) == ('<i class="null">NULL</i>', "<bdi>NULL</bdi>")
    assert link("a", "/b?c=1&d=2") == '<a href="/b?c=1&amp;d=2">a</a>'
    assert (counted(1), counted(1000), counted(0, "trigger")) == ("1 row", "1,000 rows", "0 triggers")


def test_the_first_cell_of_a_row_names_it() -> None:
    made = table("Of it", ("a", "b"), [("x", "y")])
    assert '<th scope="row">x</th><td>y</td>' in made
    assert "<caption>Of it</caption>" in made
