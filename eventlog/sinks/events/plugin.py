"""The formats `jsonl`, `debezium` and `cloudevents`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import ConfigError
from eventlog.core.places import PlaceTemplate
from eventlog.core.plugins import FormatOrder, FormatPlugin
from eventlog.core.seams import Format
from eventlog.sinks.events.settings import (
    BATCH_EVENTS,
    CloudEventsSettings,
    DebeziumSettings,
    EventSettings,
    JsonLinesSettings,
)

if TYPE_CHECKING:
    from eventlog.core.schema import Table
    from eventlog.sinks.events.write import EventTable, TransactionMarks


def _format(
    order: FormatOrder,
    table: Callable[[Table], EventTable],
    transactions: TransactionMarks | None = None,
    schema: Callable[[Table], str | None] = lambda table: table.schema,
    **named: str,
) -> Format:
    from eventlog.sinks.events.write import EventFormat

    settings: EventSettings = order.settings
    sink = order.sink
    address: PlaceTemplate | None = getattr(order.output, "address", None)
    return EventFormat(
        table=table,
        batch_size=batch_size(settings, answers=sink.answers),
        on_value=settings.on_value,
        topic=settings.topic_template() if sink.takes_values else None,
        topic_values=named,
        schema=schema,
        address=address,
        array=sink.answers,
        rising=sink.sorts_ids and order.publisher.handle_future_events,
        transactions=transactions,
        headed=sink.takes_values and order.output.who,
    )


def batch_size(settings: EventSettings, *, answers: bool) -> int:
    """Return events per document: one if the receiver `answers` each, unless set otherwise."""
    if settings.batch_size:
        return settings.batch_size
    return 1 if answers else BATCH_EVENTS


def _lines(order: FormatOrder) -> Format:
    from eventlog.sinks.events.jsonl import JsonLinesTable

    return _format(order, partial(JsonLinesTable, settings=order.settings, who=order.output.who))


def _debezium(order: FormatOrder) -> Format:
    from eventlog.sinks.events.debezium import DebeziumTable, Place
    from eventlog.sinks.events.transactions import TransactionTopic

    settings: DebeziumSettings = order.settings
    if settings.encoding == "avro":
        if not order.sink.takes_values:
            problem = 'output.debezium.encoding = "avro" needs sink = "kafka" and a schema registry.'
            raise ConfigError(problem)
        if not getattr(order.output, "registry", ""):
            problem = 'output.registry is missing: output.debezium.encoding = "avro" needs one.'
            raise ConfigError(problem)
    if settings.transaction_topic and not order.sink.takes_values:
        raise ConfigError('output.debezium.transaction_topic needs sink = "kafka".')
    transactions = TransactionTopic(settings) if settings.transaction_topic else None
    place = Place(database=order.database, home=order.home)
    table = partial(DebeziumTable, settings=settings, place=place, who=order.output.who)
    return _format(order, table, transactions, place.schema, server=settings.server)


def _cloudevents(order: FormatOrder) -> Format:
    from eventlog.sinks.events.cloudevents import CloudEventsTable

    settings: CloudEventsSettings = order.settings
    if settings.mode == "binary":
        if not (order.sink.takes_values or order.sink.answers):
            problem = 'output.cloudevents.mode = "binary" writes attributes into headers'
            raise ConfigError(f"{problem}, which this sink has not.", hint='Say mode = "structured".')
        # The attributes are one event's, and a request has one set of headers.
        if order.sink.answers and batch_size(settings, answers=True) > 1:
            problem = 'output.cloudevents.mode = "binary" sends one event a request'
            raise ConfigError(f"{problem}; set batch_size = 1.")
    return _format(order, partial(CloudEventsTable, settings=settings, who=order.output.who))


JSON_LINES: Final = FormatPlugin(build=_lines, settings=JsonLinesSettings)
DEBEZIUM: Final = FormatPlugin(
    build=_debezium,
    settings=DebeziumSettings,
    counts=lambda settings: bool(settings.transaction_topic),
)
CLOUDEVENTS: Final = FormatPlugin(build=_cloudevents, settings=CloudEventsSettings)
