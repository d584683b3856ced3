"""Replies: statuses in every wrapping, the worst level, and input that must do no harm."""

from __future__ import annotations

import pickle
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DataError, XmlError
from eventlog.xds.read import Level, StatusReply, parse, read_statuses, worst
from tests.support.shares import met, shares

STATUS = '<status level="error" event-id="7" type="app-general">no <b>such</b>\n user</status>'
READ = StatusReply(level=Level.ERROR, event_id="7", type="app-general", text="no such user")


@pytest.mark.parametrize(
    "reply",
    [
        STATUS,
        f"<output>{STATUS}</output>",
        f'<nds dtdversion="2.0"><source/><output>{STATUS}</output></nds>',
        f'<?xml version="1.0" encoding="UTF-16"?>\n<!-- x --><output>\n<!-- y -->{STATUS}<?z?><other/></output>',
    ],
)
def test_a_status_is_read_in_every_wrapping(reply: str) -> None:
    encoding = "utf-16" if "UTF-16" in reply else "utf-8"
    assert read_statuses(reply.encode(encoding)) == [READ]


def test_several_statuses_come_in_their_order() -> None:
    body = b'<output><status level="success" event-id="1"/><status level="retry"/><status level="fatal">x</status></output>'
    assert read_statuses(body) == [
        StatusReply(level=Level.SUCCESS, event_id="1"),
        StatusReply(level=Level.RETRY),
        StatusReply(level=Level.FATAL, text="x"),
    ]
    assert read_statuses(b"<output/>") == []


def test_a_drivers_own_elements_are_read_as_text() -> None:
    body = """<nds dtdversion="2.0" xmlns:jdbc="urn:dirxml:jdbc"><output>
      <status level="error"><description>It failed.</description>
        <jdbc:exception jdbc:class="E"><jdbc:message>ORA-1</jdbc:message></jdbc:exception>
        <jdbc:document xml:space="preserve">&lt;nds/></jdbc:document></status></output></nds>"""
    [status] = read_statuses(body.encode())
    assert status.text == "It failed. ORA-1 <nds/>"


@pytest.mark.parametrize(
    "body, words",
    [
        (b"", "Line 1: this is not well-formed XML"),
        (b"OK", "Line 1: this is not well-formed XML"),
        (b"\xff\xfe\x00", "this is not well-formed XML"),
        (b"<output>\n<status level='error'>\n</output>", "Line 3: this is not well-formed XML: opening and ending tag"),
        (b"<output>&undeclared;</output>", "Line 1: this is not well-formed XML: entity 'undeclared' not defined"),
        (b"<html><body/><p/></html>", "Line 1: a reply is <nds> with <output>, .*, not <html> with <body>, <p>"),
        (b"\n<nds><input/></nds>", "Line 2: a reply is <nds> with <output>, .*, not <nds> with <input>"),
        (b"<nds/>", "not <nds>"),
        (
            b"<output>\n\n<status level='great'/></output>",
            "Line 3: the level of a <status> is 'great'; it must be one of",
        ),
        (b"<status/>", "the level of a <status> is None; it must be one of success, warning, error, retry, fatal"),
    ],
)
def test_garbage_is_an_error_with_its_line(body: bytes, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_statuses(body)


def test_a_level_is_written_in_small_letters() -> None:
    with pytest.raises(XmlError, match="'ERROR'") as caught:
        read_statuses(b'<status level="ERROR"/>')
    assert caught.value.line == 1
    copy = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - made one expression earlier
    assert (str(copy), copy.line, copy.problem) == (str(caught.value), 1, caught.value.problem)


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE output [<!ENTITY l0 "ha">{LAUGHS}]>'


@pytest.mark.parametrize("huge", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        f"{BOMB}<output>&l9;</output>",
        f'{BOMB}<output a="&l9;"/>',
        f'<?xml version="1.0"?><!-- c -->{BOMB}<output>&l9;</output>',
        "<!DOCTYPE output><output/>",
        '<!DOCTYPE output SYSTEM "http://localhost:9/x.dtd"><output/>',
    ],
)
def test_a_document_type_is_refused_before_it_does_harm(body: str, *, huge: bool) -> None:
    for encoding in ("utf-8", "utf-16"):
        with pytest.raises(XmlError, match=r"a document type declaration is not accepted|amplification"):
            parse(body.encode(encoding), huge=huge)


def test_no_file_is_read_for_an_entity(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("TOP-SECRET")
    with pytest.raises(XmlError) as caught:
        read_statuses(
            f'<!DOCTYPE a [<!ENTITY x SYSTEM "{secret.as_uri()}">]><status level="error">&x;</status>'.encode()
        )
    assert "TOP-SECRET" not in str(caught.value)


def test_a_reply_has_limits() -> None:
    deep = "<a>" * 300 + "</a>" * 300
    with pytest.raises(XmlError, match=r"Line 1: .*excessive depth in document: 256[.]$"):
        read_statuses(f'<status level="error">{deep}</status>'.encode())
    with pytest.raises(XmlError, match=r"resource limit exceeded: Text node too long[.]$"):
        read_statuses(b'<status level="error">' + b"x" * (11 << 20) + b"</status>")


def test_events_may_be_long_but_not_endlessly_deep() -> None:
    assert len(parse(b"<a>" + b"x" * (11 << 20) + b"</a>", huge=True).text or "") == 11 << 20
    with pytest.raises(XmlError, match="excessive depth"):
        parse(b"<a>" * 100_000 + b"</a>" * 100_000, huge=True)


def test_the_worst_level_counts() -> None:
    order = [Level.SUCCESS, Level.WARNING, Level.ERROR, Level.RETRY, Level.FATAL]
    assert worst([]) is Level.SUCCESS
    for count in range(1, 6):
        for levels in permutations(order, count):
            assert worst(levels) is max(levels, key=order.index)


MARKUP = st.sampled_from(
    ["<nds>", "<output>", "<status level='error'>", "no", "&lt;", "&", "</status>", "</output>", "</nds>"]
)
nearly = st.lists(MARKUP, max_size=3).map(
    lambda inside: "<nds><output><status level='retry'>{}</status></output></nds>".format("".join(inside)).encode()
)


@shares(read=0.02, refused=0.2)
@given(st.binary(max_size=40) | st.text("<>/&;!?='\" ostaue\n").map(str.encode) | nearly)
def test_any_bytes_are_read_or_refused_with_a_line(body: bytes) -> None:
    said = ""
    try:
        found = read_statuses(body)
    except XmlError as error:
        said = str(error)
    met(read=not said, refused=bool(said))
    assert said.startswith("Line ") if said else len(found) <= body.count(b"<status")
