"""Places by templates: no value leads out of its part, two values never share a place, and what gives none says why."""

from __future__ import annotations

from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import PlaceKind
from eventlog.core.places import PART_BYTES, RESERVED, NoPlace, PlaceTemplate, place
from tests.support.shares import met, shares

TEMPLATE = PlaceTemplate("all/{class}/of-{new.city}", "to", ("class",), "new.")
NAMES = ("../../etc/passwd", "..", ".", "/", "a/b", "a\\b", "a\0b", "con", "NUL.txt", "x.xml", "_SUCCESS", "~root")
STRANGE = (
    "a\r\nHost: evil",
    "?a=b#c",
    "%2e%2e",
    "%252f",
    "Köln",
    "New York",
    "\ud800",
    "é" * 300,
    "",
    " ",
    "a.",
    ".part",
)
values = st.text(st.characters(codec=None)) | st.sampled_from(NAMES + STRANGE) | st.text("./%\\cCoOnN~_", max_size=6)


def led(kind: PlaceKind, city: str, template: PlaceTemplate = TEMPLATE) -> str | None:
    """The place, None where there is none."""
    try:
        return place(template, {"class": "usr", "new.city": city}, kind, ("taken",))
    except NoPlace:
        return None


@shares(led=0.5)
@given(values)
def test_a_folder_has_the_parts_that_the_template_has(value: str) -> None:
    bare = PlaceTemplate("{new.city}/{new.city}", "to", (), "new.")
    met(led=led("folder", value, bare))
    for template, depth in ((TEMPLATE, 3), (bare, 2)):
        found = led("folder", value, template)
        if found is None:
            continue
        parts = PurePosixPath(found).parts
        assert len(parts) == depth
        for part in parts:
            assert part not in (".", "..")
            assert part[0] not in "._~ "
            assert part[-1] not in ". "
            assert part.isprintable()
            assert not set(part) & set('<>:"\\|?*\0')
            assert part.partition(".")[0].lower() not in RESERVED
            assert len(part.encode()) <= PART_BYTES


@shares(led=0.1)
@given(values, values)
def test_two_values_never_share_a_place(one: str, other: str) -> None:
    met(led=one != other and led("folder", one) and led("folder", other))
    for kind in ("folder", "address"):
        found = led(kind, one)
        if found is not None and one != other:
            assert found != led(kind, other)


@shares(led=0.2)
@given(values)
def test_an_address_stays_below_its_beginning(value: str) -> None:
    found = led("address", value)
    met(led=found)
    if found is not None:
        url = urlsplit(f"http://host/base/{found}")
        assert (url.netloc, url.query, url.fragment) == ("host", "", "")
        read = unquote(url.path)
        assert read == f"/base/all/usr/of-{value}"
        assert not {".", ".."} & set(read.split("/"))
        assert found.isascii()


@shares(topic=0.03, table=0.03)
@given(values)
def test_topics_and_tables_are_names_or_nothing(value: str) -> None:
    bare = PlaceTemplate("{new.city}", "to", (), "new.")
    topic, table = led("topic", value, bare), led("table", value, bare)
    met(topic=topic, table=table)
    assert topic in (None, value)
    assert table in (None, value)
    for found in (topic, table):
        assert found is None or not set(found) & set("/\\\0 '\"`;%\n")


@pytest.mark.parametrize("kind", ["topic", "table", "address", "folder"])
@pytest.mark.parametrize("value", ["", ".", "..", "a" * 300])
def test_what_is_no_place_is_said(kind: PlaceKind, value: str) -> None:
    bare = PlaceTemplate("{new.city}", "to", (), "new.")
    if kind == "folder" and value in (".", ".."):
        assert led(kind, value, bare) == {".": "%2e", "..": "%2e%2e"}[value]
    else:
        assert led(kind, value, bare) is None


@pytest.mark.parametrize(
    "kind, value, found",
    [
        ("topic", "taken", None),
        ("topic", "__consumer_offsets", None),
        ("table", "ATTREP_cdc_partitions", None),
        ("table", "Käufer", "Käufer"),
        ("folder", "NUL.txt", "%4eUL.txt"),
    ],
)
def test_names_with_another_use_are_none_or_written_otherwise(kind: PlaceKind, value: str, found: str | None) -> None:
    assert led(kind, value, PlaceTemplate("{new.city}", "to", (), "new.")) == found


def test_empty_parts_and_long_places_are_none() -> None:
    assert led("folder", "a", PlaceTemplate("a//{new.city}", "to", (), "new.")) is None
    assert led("folder", "a" * 180, PlaceTemplate("/".join(["{new.city}"] * 6), "to", (), "new.")) is None


def test_braces_are_written_twice() -> None:
    assert PlaceTemplate("{{{table}}}", "to", ("table",)).fill({"table": "usr"}) == "{usr}"
    assert PlaceTemplate("usr", "to").fields == ()


@pytest.mark.parametrize(
    "text, said",
    [
        ("{tabel}", "names {tabel}; it knows {table}, {new.ATTRIBUTE}"),
        ("{table", "a brace is not closed"),
        ("table}", "a brace is not closed"),
        ("{new.}", "names {new.}"),
        ("{}", "names {}"),
        ("{city}", "Did you mean new.city?"),
    ],
)
def test_what_is_no_template_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PlaceTemplate(text, "to", ("table",), "new.")
    assert said in str(caught.value)
