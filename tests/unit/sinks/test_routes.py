"""Routes at formats and sinks: a document is about one place, and every sink takes it there."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import Change, Document, Edit, Op, RowId
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sinks.change_files.sink import ChangeTableFiles
from eventlog.sinks.files import FileSink
from eventlog.sinks.http.address import HttpSettings
from eventlog.sinks.http.post import Poster
from eventlog.sinks.plan_folder import OWNERS
from eventlog.xds.write import XdsFormat
from tests.support.sinks import opened

CATALOG = Catalog(
    [
        Table(name=name, columns=(Column(name="idu", type="integer", key=1), Column(name="fname", type="varchar(9)")))
        for name in ("usr", "grp")
    ]
)


def change(number: int, route: str, table: str = "usr") -> Change:
    edits = (Edit(column="fname", new=f"v{number}"),)
    row = RowId(None, table, f"idu={number}")
    return Change(row=row, op=Op.ADD, edits=edits, positions=((number,),), route=route, time="2026-01-01 00:00:00")


routes = st.lists(st.sampled_from(["", "a", "b"]), max_size=12)


@given(routes, st.integers(1, 5))
def test_a_document_is_about_one_place_and_nothing_is_lost(some: list[str], size: int) -> None:
    changes = [change(number, route) for number, route in enumerate(some, 1)]
    documents: list[Any] = list(encode(XdsFormat(batch_size=size), changes, CATALOG))
    told = [(number, one.route) for one in documents for covered in one.covers.values() for (number,) in covered]
    assert told == list(enumerate(some, 1))
    assert all(0 < len(one.covers) <= size for one in documents)
    cuts = sum(one != other for one, other in pairwise(some))
    assert len(documents) <= cuts + 1 + len(some) // size


def test_what_was_one_document_stays_one() -> None:
    changes = [change(1, "a"), change(2, "b")]
    [document] = encode(XdsFormat(batch_size=1), changes, CATALOG, whole=True)
    assert isinstance(document, Document)
    assert (document.route, len(document.covers)) == ("a", 2)


def test_files_stand_in_folders_and_the_last_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = opened(FileSink(folder, ".xml"))
    sink.commit(
        "",
        [Document(id=str(number), body=b"x", covers={}, route=route) for number, route in enumerate(("", "a/b", "c"))],
    )
    found = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.xml"))
    assert found == ["0.xml", "a/b/1.xml", "c/2.xml"]
    (folder / "a" / "b" / ".eventlog-0123456789abcdef-7.part").write_text("half")
    other = folder / "c" / "theirs"
    (other / OWNERS).mkdir(parents=True)
    for name in ("9.xml", ".eventlog-0123456789abcdef-7.part"):
        (other / name).write_text("another output's")
    again = opened(FileSink(folder, ".xml"))
    assert again.last() == "2"
    assert [path.parent for path in folder.rglob("*.part")] == [other]


def test_folders_below_are_anybody_s_until_a_route_leads_below(tmp_path: Path) -> None:
    theirs = tmp_path / "archive"
    theirs.mkdir()
    for name in ("9.xml", ".eventlog-0123456789abcdef-7.part"):
        (theirs / name).write_text("theirs")
    assert opened(FileSink(tmp_path, ".xml")).last() == ""
    assert list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    "url, route, expected",
    [
        ("http://h", "", "/"),
        ("http://h/in?x=1", "", "/in?x=1"),
        ("http://h/in/?x=1", "K%c3%b6ln/~a", "/in/K%c3%b6ln/~a?x=1"),
        ("http://h", "a", "/a"),
    ],
)
def test_an_address_goes_on_below_its_url(url: str, route: str, expected: str) -> None:
    assert Poster(HttpSettings(url=url))._target(route) == expected


def test_messages_name_the_topic_of_their_route() -> None:
    settings = MessageSettings(topic="{table}")
    [document] = encode(MessageFormat(settings=settings), [change(1, "a"), change(2, "")], CATALOG)
    assert isinstance(document, MessagesDocument)
    assert [message.topic for message in document.messages] == ["a", "usr"]
    assert b'"topic":"a"' in document.body


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b"]), st.sampled_from(["usr", "grp"])), min_size=1, max_size=30))
def test_rows_stand_in_the_tables_of_their_routes(some: list[tuple[str, str]]) -> None:
    changes = [change(number, route, table) for number, (route, table) in enumerate(some, 1)]
    found: dict[str, set[str]] = {}
    for document in encode(ChangeTableFormat(), changes, CATALOG):
        for block in document.blocks:  # type: ignore[union-attr]  # nothing is refused
            place = len(block.columns) - 1
            found.setdefault(block.target, set()).update(row[place] for row in block.rows)
    expected: dict[str, set[str]] = {}
    for number, (route, table) in enumerate(some, 1):
        expected.setdefault(f"{route or table}__ct", set()).add(f"v{number}")
    assert found == expected


def test_two_tables_may_be_sent_to_one_folder(tmp_path: Path) -> None:
    changes = [change(1, "all"), change(2, "all", "grp")]
    [document] = encode(ChangeTableFormat(), changes, CATALOG)
    assert isinstance(document, Document)
    opened(ChangeTableFiles(tmp_path)).commit("", [document])
    assert len(list((tmp_path / "all__ct").glob("*.parquet"))) == 2
