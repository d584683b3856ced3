"""Reading the events of an XDS document back into values, as a receiver sees them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from eventlog.core.errors import XmlError
from eventlog.core.model import Op
from eventlog.xds.read import XmlElement, line_of, parse

Action = Literal["add-value", "remove-value", "remove-all-values"]


class XdsValue(Struct, frozen=True, kw_only=True):
    """One `<value>`: its type, its text, and the association of the object that it means."""

    text: str
    type: str | None = None
    association: str | None = None


class XdsStep(Struct, frozen=True, kw_only=True):
    """What happens to an attribute, and with which values."""

    action: Action
    values: tuple[XdsValue, ...] = ()


class XdsAttribute(Struct, frozen=True, kw_only=True):
    """One `<add-attr>` or `<modify-attr>`, its steps in their order; an `<add-attr>` is one step."""

    name: str
    steps: tuple[XdsStep, ...]


class XdsEvent(Struct, frozen=True, kw_only=True):
    """One `<add>`, `<modify>` or `<delete>`; the association comes without the white space round it."""

    op: Op
    class_name: str | None
    association: str | None
    event_id: str | None = None
    attributes: tuple[XdsAttribute, ...] = ()


def read_events(body: bytes) -> list[XdsEvent]:
    """Read the events of a document, a bare `<input>` or a bare event, in order."""
    root = parse(body, huge=True)
    return [_event(element) for element in root.iter(*[op.value for op in Op])]


def _event(element: XmlElement) -> XdsEvent:
    association = element.find("association")
    return XdsEvent(
        op=Op(str(element.tag)),
        class_name=element.get("class-name"),
        association=None if association is None else _text(association).strip(),
        event_id=element.get("event-id"),
        attributes=tuple(map(_attribute, element.iterchildren("add-attr", "modify-attr"))),
    )


def _attribute(element: XmlElement) -> XdsAttribute:
    name = element.get("attr-name")
    if name is None:
        raise XmlError(f"<{element.tag}> has no attr-name", line=line_of(element))
    if element.tag == "add-attr":
        return XdsAttribute(name=name, steps=(XdsStep(action="add-value", values=_values(element)),))
    return XdsAttribute(name=name, steps=tuple(map(_step, element.iterchildren())))


def _step(element: XmlElement) -> XdsStep:
    match element.tag:
        case "add-value" | "remove-value" | "remove-all-values" as action:
            return XdsStep(action=action, values=_values(element))
    raise XmlError(f"<{element.tag}> cannot stand in <modify-attr>", line=line_of(element))


def _values(element: XmlElement) -> tuple[XdsValue, ...]:
    return tuple(
        XdsValue(text=_text(value), type=value.get("type"), association=value.get("association-ref"))
        for value in element.iterchildren("value")
    )


def _text(element: XmlElement) -> str:
    return "".join(map(str, element.itertext()))
