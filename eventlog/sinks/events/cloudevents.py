"""CloudEvents 1.0: the attributes of an event, and its data, which is the object of a JSON line."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from eventlog.core.model import Change
from eventlog.core.schema import Table
from eventlog.core.who import who_fields
from eventlog.sinks.events.jsonl import record, time_text
from eventlog.sinks.events.rows import RowEvent, TableRows, encode, json_field
from eventlog.sinks.events.settings import CloudEventsSettings
from eventlog.sinks.events.write import EventBytes

STRUCTURED: Final = "application/cloudevents+json; charset=UTF-8"
BATCH: Final = "application/cloudevents-batch+json; charset=UTF-8"
DATA: Final = "application/json"

_forbidden = re.compile("[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]")
"""Characters that no attribute may hold."""


class CloudEventsTable:
    """Writes the events of one table."""

    def __init__(self, table: Table, settings: CloudEventsSettings, *, who: bool = False) -> None:
        self.rows = TableRows(table, json_field)
        self._settings = settings
        self._who = who
        self._type = settings.type_template()

    def write(self, change: Change, event: RowEvent) -> EventBytes:
        key = None if event.key is None else encode(event.key)  # a table without a key has none
        attributes, data = self._attributes(change, event), record(change, event, who=self._who)
        whole = encode({**attributes, "data": data})
        if self._settings.mode == "structured":
            content = ("content-type", STRUCTURED.encode())
            return EventBytes(key=key, value=whole, headers=(content,))
        # At Kafka, datacontenttype is the header content-type.
        headers = [(f"ce_{name}", text.encode()) for name, text in attributes.items() if name != "datacontenttype"]
        content = ("content-type", attributes["datacontenttype"].encode())
        # A request is given the whole event: its sink makes headers of it.
        return EventBytes(key=key, value=encode(data), headers=(content, *headers), document=whole)

    def _attributes(self, change: Change, event: RowEvent) -> dict[str, str]:
        row, when = change.row, time_text(change)
        named = {"schema": row.schema or "", "table": row.table, "op": event.op}
        # A table without a schema leaves no empty part.
        kind = ".".join(filter(None, self._type.fill(named).split(".")))
        subject = f"{self.rows.table.whole}/{row.key}" if row.key else self.rows.table.whole
        attributes = {
            "specversion": "1.0",
            "id": change.event_id,
            "source": self._settings.source,
            "type": attribute(kind),
            "subject": attribute(subject),
            "datacontenttype": DATA,
        }
        if when is not None:
            attributes["time"] = when
        if self._who:
            # Names of extensions, which have lower case letters only.
            fields = who_fields(change.who).items()
            attributes |= {f"eventlog{name}": text for name, text in fields if text is not None}
        return attributes


def attribute(text: str) -> str:
    """Percent-encode the characters an attribute may not hold."""
    return _forbidden.sub(lambda match: quote(match[0]), text)


def binary(event: bytes) -> tuple[dict[str, str], bytes]:
    """Return headers and body of a request carrying the event in binary mode."""
    attributes: Mapping[str, Any] = msgspec.json.decode(event)
    headers = {"Content-Type": attributes["datacontenttype"]}
    for name, text in attributes.items():
        if name not in ("data", "datacontenttype"):
            headers[f"ce-{name}"] = _header(text)
    return headers, encode(attributes["data"])


def _header(text: str) -> str:
    """Encode a header's value as the HTTP binding requires."""
    return quote(text, safe="!#$&'()*+,-./:;<=>?@[\\]^_`{|}~")
