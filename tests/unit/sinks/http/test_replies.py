"""Replies: every level, several statuses for one event, event-ids that fit and that do not, and what is no reply."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import XmlError
from eventlog.core.model import Document, Outcome, Reason, Status
from eventlog.sinks.http.post import cut
from eventlog.sinks.http.sink import Reply, again_later, read_reply
from tests.support.shares import met, shares

DOCUMENT = Document(id="7", body=b"<nds/>", covers={"5": ((5,),), "6-7": ((6,), (7,))})
LEVELS = ["success", "warning", "error", "retry", "fatal"]
LETTERS = {
    "success": Status.SUCCESS,
    "warning": Status.WARNING,
    "error": Status.ERROR,
    "retry": Status.NEW,
    "fatal": Status.FATAL,
}


def statuses(*entries: str) -> bytes:
    return f'<nds dtdversion="2.0"><output>{"".join(entries)}</output></nds>'.encode()


def status(level: str, event_id: str | None = None, text: str = "") -> str:
    named = "" if event_id is None else f' event-id="{event_id}"'
    return f'<status level="{level}"{named}>{text}</status>'


def read(*entries: str) -> dict[int, Outcome]:
    return {outcome.position[0]: outcome for outcome in read_reply(DOCUMENT, statuses(*entries)).outcomes}


@pytest.mark.parametrize("body", [b"", b" \r\n", statuses(), statuses(status("success", "5"), status("success"))])
def test_success_and_silence_need_no_words(body: bytes) -> None:
    reply = read_reply(DOCUMENT, body)
    assert reply == Reply()
    assert not reply.ends


@pytest.mark.parametrize(
    "level,letter,reason,ends",
    [
        ("warning", Status.WARNING, Reason.PUBLISHED, False),
        ("error", Status.ERROR, Reason.REFUSED, False),
        ("retry", Status.NEW, Reason.RETRY, True),
        ("fatal", Status.FATAL, Reason.REFUSED, True),
    ],
)
@pytest.mark.parametrize(
    "text, note", [("no  such\ngroup", "no such group"), ("", "the receiver answered {!r} without a word")]
)
def test_every_event_behind_an_event_id_gets_the_letter_and_the_text(
    level: str, letter: Status, reason: Reason, ends: bool, text: str, note: str
) -> None:
    """Nothing may follow what is still to be taken or fatal."""
    reply = read_reply(DOCUMENT, statuses(status(level, "6-7", text)))
    said = note.format(level)
    assert [*reply.outcomes] == [
        Outcome(position=(number,), status=letter, reason=reason, note=said) for number in (6, 7)
    ]
    assert reply.ends is ends


@shares(several=0.3)
@given(st.lists(st.sampled_from(LEVELS), min_size=1, max_size=6))
def test_of_several_statuses_the_worst_counts(levels: list[str]) -> None:
    found = read(*(status(level, "5") for level in levels))
    met(several=len(set(levels)) > 1)
    expected = LETTERS[max(levels, key=LEVELS.index)]
    assert (found[5].status if found else Status.SUCCESS) is expected
    assert set(found) <= {5}


def test_the_texts_of_the_worst_level_are_kept_once_each() -> None:
    entries = [status("error", "5", text) for text in ("one", "two", "one")]
    assert read(status("warning", "5", "mild"), *entries)[5].note == "one; two"


def test_a_text_that_is_far_too_long_is_cut() -> None:
    note = read(status("error", "5", "x" * 9000))[5].note
    assert note is not None
    assert note.startswith("xxx")
    assert len(note) < 2100


def test_a_status_without_event_id_speaks_of_every_event() -> None:
    found = read(status("warning", text="slow today"), status("error", "5", "no"))
    assert [(number, outcome.status.value) for number, outcome in sorted(found.items())] == [
        (5, "E"),
        (6, "W"),
        (7, "W"),
    ]


@pytest.mark.parametrize(
    "body",
    [b"OK", b'{"status": "ok"}', b"<html><body>Welcome</body></html>", statuses(status("fine", "5")), statuses()[:-9]],
)
def test_what_is_no_reply_is_an_error(body: bytes) -> None:
    with pytest.raises(XmlError):
        read_reply(DOCUMENT, body)


def test_again_later_counts_an_attempt_for_every_event() -> None:
    reply = again_later(DOCUMENT, "it broke off")
    assert [outcome.position for outcome in reply.outcomes] == [(5,), (6,), (7,)]
    assert {(outcome.status, outcome.reason, outcome.note) for outcome in reply.outcomes} == {
        (Status.NEW, Reason.RETRY, "it broke off")
    }
    assert reply.ends


def test_a_connection_that_is_gone_can_be_cut() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    cut(ours)
    assert ours.fileno() == -1
