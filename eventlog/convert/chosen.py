"""Chooses the form in which a conversion was ordered; only then are the form's modules loaded."""

from __future__ import annotations

from collections.abc import Mapping

from eventlog.convert.forms import Form
from eventlog.convert.settings import Conversion, MessageFiles, SentMessages, SentTables, TableFiles
from eventlog.core.schema import Table


def form_of(conversion: Conversion, tables: Mapping[int, Table] | None = None) -> Form:
    """The form that was ordered. `tables` are by number, where a stream named them."""
    target = conversion.format
    if tables is None:
        tables = dict(enumerate(conversion.catalog or ()))
    if isinstance(target, TableFiles):
        from eventlog.convert.rowform import TableForm

        return TableForm(target, tables)
    if isinstance(target, MessageFiles):
        from eventlog.convert.messageform import MessageForm

        return MessageForm(target, tables)
    if isinstance(target, SentTables):
        from eventlog.convert.rowform import TableDocuments

        return TableDocuments(target, tables)
    if isinstance(target, SentMessages):
        from eventlog.convert.messageform import MessageDocuments

        return MessageDocuments(target, tables)
    from eventlog.convert.textform import TextForm

    return TextForm(target)
