"""The format `xds`: documents with <add>, <modify> and <delete>."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from eventlog.core.plugins import FormatOrder, FormatPlugin
from eventlog.core.seams import Format

if TYPE_CHECKING:
    from eventlog.xds.write import XdsFormat


def xds_format(
    publisher: Any, schema: str | None, *, batch_size: int | None = None, rising: bool = False, who: bool = False
) -> XdsFormat:
    """Make the format from the publisher's settings."""
    from eventlog.xds.write import XdsFormat

    return XdsFormat(
        batch_size=batch_size or publisher.batch_size,
        time_syntax=publisher.time_syntax,
        on_value=publisher.on_value,
        enable_refs=publisher.enable_refs,
        schema_name=schema,
        rising=rising,
        who=who,
    )


def _format(order: FormatOrder) -> Format:
    rising = order.sink.sorts_ids and order.publisher.handle_future_events
    return xds_format(order.publisher, order.schema, rising=rising, who=order.output.who)


XDS: Final = FormatPlugin(build=_format)
