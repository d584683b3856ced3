"""A document beside the last one of its object: what differs is marked, and nothing is lost."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.explain.rows import FormerDocument
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.web.differences import MOST_ROWS, Pieces, compare_documents, spread
from tests.conformance.event_logs import LogTable
from tests.web.states import AFTER, BEFORE
from tests.web.visiting import Visit, opened

texts = st.text('<>/ab \n"é', max_size=80)


def whole(pieces: Pieces | None) -> str | None:
    return None if pieces is None else "".join(text for text, _ in pieces)


@given(before=texts, after=texts)
def test_both_documents_stand_there_whole(before: str, after: str) -> None:
    found = compare_documents(FormerDocument(record_id=1, document=before), after)
    assert found is not None
    left = [whole(line.former) for line in found.lines if line.former is not None]
    right = [whole(line.present) for line in found.lines if line.present is not None]
    assert (left, right) == (spread(before), spread(after))
    assert all(whole(line.former) == whole(line.present) for line in found.lines if not line.is_changed)


def test_what_differs_is_marked_and_the_id_of_a_document_is_not() -> None:
    found = compare_documents(FormerDocument(record_id=3, document=BEFORE), AFTER)
    assert found is not None
    [changed] = [line for line in found.lines if line.is_changed]
    assert [text for text, differs in changed.former or () if differs] == ["Jack"]
    assert [text for text, differs in changed.present or () if differs] == ["John"]


def test_without_two_documents_or_with_a_very_long_one_there_is_no_difference() -> None:
    former = FormerDocument(record_id=1, document=BEFORE)
    assert compare_documents(None, AFTER) is None
    assert compare_documents(former, None) is None
    assert compare_documents(former, "<a/>\n" * (MOST_ROWS + 1)) is None


def test_a_row_shows_its_document_beside_the_last_one_also_where_that_is_published(sqlite: Engine) -> None:
    install(sqlite)
    log = LogTable(sqlite)
    log.run("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname TEXT)")
    track(sqlite, ["usr"], TriggerOptions(style=Style.FIELD))
    log.run("INSERT INTO usr VALUES (1, '<Jack>')")
    log.run("UPDATE usr SET fname = 'John'")
    with opened(sqlite) as page:
        visit = Visit(page)
        for published in (False, True):
            if published:
                log.run("UPDATE event_log SET status = 'S' WHERE record_id = 1")
            for path in ("/rows/2", "/rows/2/document"):
                table = visit.get(path).body.partition('<table class="difference">')[2].partition("</table>")[0]
                assert re.search(r"before, from\s+<a href=\"/rows/1\"", table), (path, published)
                assert "John" in table
                assert "&amp;lt;" in table, "a value of the database stays a text"
        assert '<table class="difference">' not in visit.get("/rows/1").body
