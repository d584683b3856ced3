"""`eventlog decode messages`: messages of Kafka, in JSON or Avro, as people read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from eventlog.cli.show import show_text
from eventlog.cli.site import ReadFile, config_option, content_of, json_option
from eventlog.core.errors import EX_DATA, OK, DataError
from eventlog.core.secrets import visible
from eventlog.qlik.messages.kept import CONTAINER, read_kept, read_messages, read_record
from eventlog.qlik.messages.reader import NOT_MET, MessageReader, Read

if TYPE_CHECKING:
    from eventlog.sinks.kafka.settings import KafkaSettings

Shown = tuple[str, Callable[[], Read | DataError]]
"""Where a message stands, and what reads it or gives the error."""


@click.command()
@click.argument("files", metavar="FILE", type=ReadFile(), nargs=-1, required=True)
@click.option(
    "--avro-schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The schema of Avro without an envelope.",
)
@click.option("--registry", metavar="URL", help="The schema registry of messages with a schema number.")
@click.option(
    "--kafka",
    metavar="SERVERS",
    help="Each FILE is a topic of this Kafka, read from its beginning to its end.",
)
@config_option("A configuration; the first output to Kafka in it says how brokers are reached.")
@json_option
def messages(
    files: tuple[Path, ...],
    avro_schema: Path | None,
    registry: str | None,
    kafka: str | None,
    config: Path | None,
    as_json: bool,
) -> int:
    """Shows the messages in FILE, or in several: lines of JSON, pretty-printed JSON, arrays, lines
    in Base64, what kcat -J writes, an Avro container, or one value. `-` is standard input.

    Metadata in one FILE describe the data in all of them, in any order.

    Example: eventlog decode messages out/shop.orders/part-00000.jsonl
    """
    from eventlog.sinks.kafka.registry import registry_of
    from eventlog.sinks.kafka.settings import KafkaSettings

    numbered = None
    if registry:
        # Only the registry is asked here, and no broker.
        numbered = registry_of(KafkaSettings(servers="none", registry=registry)).schema_of
    schema = None
    if avro_schema is not None:
        schema = content_of(avro_schema).decode()
    reader = MessageReader(numbered, schema)
    damaged = False
    for position, message in _order_messages(_all(files, _brokers(kafka, config), reader)):
        damaged |= isinstance(message, DataError)
        if as_json:
            click.echo(visible(_as_json(position, message), json=True))
        else:
            show_text(f"{position}: {_as_text(message)}")
    return EX_DATA if damaged else OK


def _brokers(servers: str | None, config: Path | None) -> KafkaSettings | None:
    """Return settings of the brokers to read from; None to read files."""
    from msgspec.structs import replace

    from eventlog.config.settings import load
    from eventlog.sinks.kafka.plugin import KafkaOutput
    from eventlog.sinks.kafka.settings import KafkaSettings

    if servers is None:
        return None
    settings = KafkaSettings(servers=servers, transactional_id="eventlog-decode")
    for output in load(config).output:
        if isinstance(output, KafkaOutput):
            settings = output
            break
    return replace(settings, servers=servers)


def _all(
    files: Sequence[Path],
    brokers: KafkaSettings | None,
    reader: MessageReader,
) -> Iterator[Shown]:
    for file in files:
        if brokers is not None:
            from eventlog.sinks.kafka.reading import topic_values

            for position, value in topic_values(brokers, str(file)):
                yield position, partial(read_kept, reader, value)
            continue
        before = f"{file}, " if len(files) > 1 else ""
        content = content_of(file)
        if content.startswith(CONTAINER):
            for position, read in _read_container(content, reader):
                yield before + position, read
        elif content.strip():
            for position, message in read_messages(content):
                yield before + position, partial(read_kept, reader, message)


def _order_messages(messages: Iterable[Shown]) -> Iterator[tuple[str, Read | DataError]]:
    """Yield messages in order; those still missing metadata come last."""
    waiting: list[Shown] = []
    for position, read in messages:
        message = read()
        if isinstance(message, Read) and message.note == NOT_MET:
            waiting.append((position, read))
        else:
            yield position, message
    for position, read in waiting:
        yield position, read()


def _read_container(content: bytes, reader: MessageReader) -> Iterator[Shown]:
    from io import BytesIO

    from fastavro import reader as container

    number = 0
    try:
        for number, record in enumerate(container(BytesIO(content)), 1):
            yield f"record {number}", partial(read_record, reader, record)
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever a damaged file makes it run into
        problem = DataError(f"The container is damaged here ({type(error).__name__}); write it again.")
        yield f"after record {number}", lambda: problem


def _as_json(position: str, message: Read | DataError) -> str:
    facts = {"error": str(message)}
    if not isinstance(message, DataError):
        facts = msgspec.to_builtins(message, builtin_types=())
    # What JSON has no word for, such as an exact number, is shown as its text.
    return msgspec.json.encode({"place": position, **facts}, enc_hook=str).decode()


def _as_text(message: Read | DataError) -> str:
    if isinstance(message, DataError):
        return f"ERROR {message}"
    if message.kind == "metadata":
        content = message.content or {}
        columns = ", ".join((content.get("tableStructure") or {}).get("tableColumns") or ())
        version = (content.get("lineage") or {}).get("tableVersion")
        of_table = f"{message.table} version {version}, schema {message.schema_id}"
        return f"METADATA {of_table}: {columns}"
    if message.kind != "data":
        return f"{message.kind.upper()} {message.note or ''}".rstrip()
    facts = (message.operation, message.table, message.sequence)
    parts = [str(fact) for fact in facts if fact]
    parts.append(msgspec.json.encode(message.row, enc_hook=str).decode())
    if message.before:
        parts.append(f"before {msgspec.json.encode(message.before, enc_hook=str).decode()}")
    if message.changed is not None:
        parts.append(f"changed {', '.join(message.changed) or 'nothing'}")
    return " ".join(parts)
