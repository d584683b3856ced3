"""XDS: changes out as `<add>`, `<modify>` and `<delete>`, statuses back. Pure: text and bytes in,
text and bytes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from eventlog.core.model import Change, Document, Refusal
    from eventlog.core.schema import Catalog, Table


def encode(
    changes: Iterable[Change],
    tables: Catalog | Iterable[Table] | Mapping[str, Table] | None = None,
    *,
    refused: Callable[[Refusal], object] | None = None,
    **settings: Any,
) -> Iterator[Document]:
    """Write changes as documents; `settings` are those of XdsFormat.

    Hand a change without an expression in XDS to `refused`; without it, raise ExpressionError.
    """
    from eventlog.core.errors import ExpressionError
    from eventlog.core.model import Document
    from eventlog.xds.write import XdsFormat

    for made in XdsFormat(**settings).encode(changes, _catalog(tables)):
        if isinstance(made, Document):
            yield made
        elif refused is None:
            raise ExpressionError(made.note)
        else:
            refused(made)


def _catalog(tables: Catalog | Iterable[Table] | Mapping[str, Table] | None) -> Catalog | None:
    from eventlog.core.schema import Catalog

    if tables is None or isinstance(tables, Catalog):
        return tables
    if isinstance(tables, Mapping):
        tables = tables.values()
    return Catalog(tables)
