"""Documents as they are given to outputs, for whoever debugs: on the logger `eventlog.documents`, and only at its level DEBUG."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from eventlog.core.model import Document

DOCUMENTS: Final = logging.getLogger("eventlog.documents")


def log_documents(output: str, documents: Sequence[Document]) -> None:
    """Logs each document; costs nothing where nobody asked for it."""
    if not DOCUMENTS.isEnabledFor(logging.DEBUG):
        return
    for document in documents:
        rows = sum(map(len, document.covers.values()))
        facts = {"output": output, "document": document.id, "rows": rows, "body": _text(document)}
        DOCUMENTS.debug("document", extra={"facts": facts})


def _text(document: Document) -> str:
    """Read a document's text; of one with parts in place of a body, as a message has, join these."""
    if document.body:
        return document.body.decode("utf-8", "backslashreplace")
    parts = [
        str(getattr(document, name)) for name in document.__struct_fields__ if name not in Document.__struct_fields__
    ]
    return "\n".join(parts)
