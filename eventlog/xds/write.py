"""The XDS format: changes in, whole `<nds>` documents out, each with up to a batch of changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, ExpressionError
from eventlog.core.model import Change, Document, Op, Position, Refusal
from eventlog.core.schema import Catalog
from eventlog.core.seams import Writer, Written, encode
from eventlog.version import VERSION
from eventlog.xds.elements import element
from eventlog.xds.fields import Settings
from eventlog.xds.templates import Templates
from eventlog.xds.text import attribute, shown
from eventlog.xds.times import TimeSyntax

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

HEARTBEAT = "0-heartbeat"
"""The id of every heartbeat: it sorts before all others, because none has fewer than twenty digits."""


class XdsFormat(Struct, frozen=True, kw_only=True):
    """Writes XDS documents. `schema_name` stands in associations where the table has no schema of its own.

    Without `envelope` a document is a bare `<input>`, for receivers that put it into an envelope of theirs.
    """

    batch_size: int = 1
    time_syntax: TimeSyntax = 1
    enable_refs: bool = True
    schema_name: str | None = None
    instance: str = "eventlog"
    envelope: bool = True

    @property
    def suffix(self) -> str:
        return ".xml"

    def __post_init__(self) -> None:
        """Refuses settings that no document could be written with."""
        if self.batch_size < 1:
            raise ConfigError(f"batch_size is {self.batch_size}; a document holds at least 1 change.")
        if self.time_syntax not in (1, 2, 3):
            raise ConfigError(f"time_syntax is {shown(self.time_syntax)}; choose 1, 2 or 3.")
        for name in ("instance", "schema_name"):
            try:
                attribute(getattr(self, name) or "")
            except ExpressionError as error:
                raise ConfigError(f"{name}: {error}.") from error

    def writer(self, catalog: Catalog | None = None) -> Writer:
        """Writes each change as it stands in a document, or says why XDS cannot express it."""
        templates = Templates(catalog, self._settings("    " if self.envelope else "  "))

        def write(changes: Iterable[Change]) -> Iterator[Written | Refusal]:
            for one in changes:
                change = said(one) if one.whole else one
                if change is None:
                    continue
                event_id = change.event_id
                try:
                    yield Written(event_id, change.positions, element(change, event_id, templates))
                except ExpressionError as error:
                    yield Refusal(positions=change.positions, note=refusal_note(change, error))

        return write

    def bind(self, written: Iterable[Written], after: str = "") -> Iterator[Document]:
        """Documents of a batch of changes each, in the order given; ids come from positions, not `after`."""
        opening, closing = self.wrapping()
        changes = iter(written)
        while batch := list(islice(changes, self.batch_size)):
            yield Document(
                id=document_id(batch[-1].positions[-1]),
                body=_body(opening, [change.text for change in batch], closing),
                covers={change.event_id: change.positions for change in batch},
            )

    def encode(
        self, changes: Iterable[Change], catalog: Catalog | None = None, after: str = ""
    ) -> Iterator[Document | Refusal]:
        """Documents in the order of the changes, and refusals as they are met."""
        return encode(self, changes, catalog, after)

    def heartbeat(self) -> Document:
        """The document that says that the publisher is alive."""
        opening, closing = self.wrapping()
        indent = "    " if self.envelope else "  "
        body = _body(opening, [f'{indent}<status level="success" type="heartbeat"/>\n'], closing)
        return Document(id=HEARTBEAT, body=body, covers={})

    def fragment(self, change: Change, catalog: Catalog | None = None) -> str:
        """The element of one change, without its document; ExpressionError when XDS cannot express the change."""
        return element(change, change.event_id, Templates(catalog, self._settings("")))

    def _settings(self, indent: str) -> Settings:
        return Settings(
            time_syntax=self.time_syntax, enable_refs=self.enable_refs, schema_name=self.schema_name, indent=indent
        )

    def wrapping(self) -> tuple[str, str]:
        """What stands before and after the elements of a document."""
        if not self.envelope:
            return f"{DECLARATION}<input>\n", "</input>\n"
        opening = (
            f'{DECLARATION}<nds dtdversion="2.0" ndsversion="8.x">\n  <source>\n'
            f'    <product version="{VERSION}" instance="{attribute(self.instance)}">eventlog</product>\n'
            "    <contact>eventlog</contact>\n  </source>\n  <input>\n"
        )
        return opening, "  </input>\n</nds>\n"


def said(change: Change) -> Change | None:
    """The images of a row without what did not change; None when nothing did."""
    if change.op is not Op.MODIFY:
        return change
    edits = tuple([edit for edit in change.edits if edit.old != edit.new])
    return replace(change, edits=edits) if edits else None


def fragment(change: Change, catalog: Catalog | None = None) -> str:
    """The element of one change in the default settings; ExpressionError when XDS cannot express the change."""
    return XdsFormat().fragment(change, catalog)


def document_id(position: Position) -> str:
    """The id of the document whose last change stands there: ids sort as text like positions do."""
    return ".".join([f"{number:020d}" for number in position])


def refusal_note(change: Change, error: ExpressionError) -> str:
    """Which object cannot be published, and why."""
    return f"{shown(change.row.table)} {shown(change.row.key)}: {error}."


def _body(opening: str, elements: list[str], closing: str) -> bytes:
    return "".join([opening, *elements, closing]).encode()
