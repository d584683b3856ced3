"""Reading events back: what a receiver sees of a document."""

from __future__ import annotations

import pytest

from eventlog.core.errors import XmlError
from eventlog.core.model import Op
from tests.support.xds_events import XdsAttribute, XdsEvent, XdsStep, XdsValue, read_events

DOCUMENT = b"""<nds dtdversion="2.0"><source><product>x</product></source><input>
  <add class-name="usr" event-id="1">
    <association>idu=1,table=usr
    </association>
    <add-attr attr-name="fname"><value type="string"> Jack
</value></add-attr>
    <add-attr attr-name="phone"><value>1</value><value>2</value></add-attr>
  </add>
  <modify class-name="usr">
    <association>idu=1</association>
    <modify-attr attr-name="boss"><remove-all-values/><add-value>
      <value type="dn" association-ref="idu=2">2</value></add-value></modify-attr>
    <modify-attr attr-name="lname"><remove-value><value/></remove-value></modify-attr>
  </modify>
  <status level="success"/>
  <delete/>
</input></nds>"""


def test_events_are_read_in_their_order() -> None:
    assert read_events(DOCUMENT) == [
        XdsEvent(
            op=Op.ADD,
            class_name="usr",
            association="idu=1,table=usr",
            event_id="1",
            attributes=(
                XdsAttribute(name="fname", steps=(added(XdsValue(type="string", text=" Jack\n")),)),
                XdsAttribute(name="phone", steps=(added(XdsValue(text="1"), XdsValue(text="2")),)),
            ),
        ),
        XdsEvent(
            op=Op.MODIFY,
            class_name="usr",
            association="idu=1",
            attributes=(
                XdsAttribute(
                    name="boss",
                    steps=(
                        XdsStep(action="remove-all-values"),
                        added(XdsValue(type="dn", association="idu=2", text="2")),
                    ),
                ),
                XdsAttribute(name="lname", steps=(XdsStep(action="remove-value", values=(XdsValue(text=""),)),)),
            ),
        ),
        XdsEvent(op=Op.DELETE, class_name=None, association=None),
    ]


def added(*values: XdsValue) -> XdsStep:
    return XdsStep(action="add-value", values=values)


def test_a_bare_event_is_read_too() -> None:
    assert [event.op for event in read_events(b"<delete/>")] == [Op.DELETE]
    assert read_events(b'<input><status level="success" type="heartbeat"/></input>') == []


@pytest.mark.parametrize(
    "body, words",
    [
        (b"<add>\n<add-attr/></add>", "Line 2: <add-attr> has no attr-name"),
        (b"<modify>\n\n<modify-attr attr-name='a'><value/></modify-attr></modify>", "Line 3: <value> cannot stand in"),
        (b"<!DOCTYPE add><add/>", "document type"),
        (b"<add>", "not well-formed"),
    ],
)
def test_what_is_no_event_is_an_error(body: bytes, words: str) -> None:
    with pytest.raises(XmlError, match=words):
        read_events(body)
