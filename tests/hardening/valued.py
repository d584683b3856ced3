"""A store of attributes that hold several values each, and the replay of XDS documents into it."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

from tests.hardening.replaying import Object, Told, told_of

Values = dict[Object, dict[str, set[str]]]
SEVERAL = frozenset({"usr_phone.phoneno", "item_tag.tag"})


def replay_values(documents: Iterable[bytes]) -> tuple[Values, list[Told]]:
    """The store after the documents, without attributes that hold nothing, and every event in order."""
    store: Values = {}
    told: list[Told] = []
    for body in documents:
        for event in ET.fromstring(body).iter():  # noqa: S314  # the program's own documents
            if event.tag in ("add", "modify", "delete"):
                told.append(told_of(event))
                _apply(store, told[-1].place, event)
    kept = {place: {name: held for name, held in row.items() if held} for place, row in store.items()}
    return {place: row for place, row in kept.items() if row}, told


def _apply(store: Values, place: Object, event: ET.Element) -> None:
    if event.tag == "delete":
        store.pop(place, None)
        return
    row = store.setdefault(place, {})
    for attribute in event:
        name = attribute.get("attr-name", "")
        held = row.setdefault(name, set())
        if attribute.tag == "add-attr":
            _add(held, attribute, name)
        for step in attribute if attribute.tag == "modify-attr" else ():
            if step.tag == "remove-all-values":
                held.clear()
            elif step.tag == "remove-value":
                held -= _values(step)
            else:
                _add(held, step, name)


def _add(held: set[str], element: ET.Element, name: str) -> None:
    if name not in SEVERAL:
        held.clear()
    held |= _values(element)


def _values(element: ET.Element) -> set[str]:
    return {value.text or "" for value in element.iter("value")}
