"""The format `messages`: as Qlik Replicate writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from eventlog.core.plugins import FormatOrder, FormatPlugin
from eventlog.core.seams import Format
from eventlog.qlik.messages.settings import MessageSettings


def _format(order: FormatOrder) -> Format:
    from eventlog.qlik.messages.write import MessageFormat

    # Who takes only bytes has no topics that a name could be wrong for.
    bytes_only = not order.sink.takes_values
    return MessageFormat(settings=order.settings, body=bytes_only, free=bytes_only, headed=order.output.who)


def _list_ignored(settings: MessageSettings) -> Iterator[tuple[str, str]]:
    if settings.mode != "metadata" and settings.metadata_topic != MessageSettings().metadata_topic:
        yield "metadata_topic", 'writes no metadata messages; say mode = "metadata", or take the setting out.'


MESSAGES: Final = FormatPlugin(
    build=_format,
    settings=MessageSettings,
    ignored=_list_ignored,
    counts=lambda _: True,
)
