"""`eventlog decode messages`: messages of Kafka, in JSON or Avro, as people read them."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from eventlog.cli.places import ReadFile
from eventlog.cli.show import show_text
from eventlog.cli.site import json_option
from eventlog.core.errors import EX_DATA, OK, DataError
from eventlog.core.secrets import visible
from eventlog.qlik.messages.reader import MessageReader, Read, bytes_of


@click.command()
@click.argument("file", type=ReadFile())
@click.option("--avro-schema", type=click.Path(path_type=Path), help="The schema of Avro without an envelope.")
@click.option("--registry", metavar="URL", help="The schema registry that numbered messages speak of.")
@json_option
def messages(file: Path, avro_schema: Path | None, registry: str | None, as_json: bool) -> int:
    """Shows the messages in FILE: lines of JSON, what kcat -J writes, an Avro container, or one value. `-` is standard input.

    Example: eventlog decode messages out/shop.orders/part-00000.jsonl
    """
    from eventlog.sinks.kafka.registry import registry_of
    from eventlog.sinks.kafka.settings import KafkaSettings

    numbered = registry_of(KafkaSettings(servers="none", registry=registry)).schema_of if registry else None
    schema = _content(avro_schema).decode() if avro_schema is not None else None
    damaged = False
    for place, found in _read(_content(file), MessageReader(numbered, schema)):
        damaged |= isinstance(found, DataError)
        if as_json:
            click.echo(visible(_as_json(place, found), json=True))
        else:
            show_text(f"{place}: {_as_text(found)}")
    return EX_DATA if damaged else OK


def _read(content: bytes, reader: MessageReader) -> Iterator[tuple[str, Read | DataError]]:
    """Where each message stands, and what it says or why it cannot be read."""
    content = content.removeprefix(BOM_UTF8)
    if not content.strip():
        return
    if content.startswith(b"Obj\x01"):
        yield from _contained(content, reader)
    elif content.startswith(b"atMSG") or content[:1] not in (b"{", b" ", b"\n"):
        yield "value", _one(reader, content)
    else:
        for number, line in enumerate(content.splitlines(), 1):
            if line.strip():
                yield f"line {number}", _line(reader, line)


def _line(reader: MessageReader, line: bytes) -> Read | DataError:
    """A message by itself, or with its topic and key round it."""
    try:
        found: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return DataError(f"This is no JSON: {error}.")
    for name in ("value", "payload"):
        if isinstance(found, dict) and "topic" in found and name in found:
            found = found[name]
            break
    if found is None or isinstance(found, str):
        return _one(reader, None if found is None else bytes_of(found))
    if not isinstance(found, dict):
        return DataError("This is no message: messages are objects.")
    try:
        return reader.read_json(found)
    except DataError as error:
        return error


def _one(reader: MessageReader, value: bytes | None) -> Read | DataError:
    try:
        return reader.read(value)
    except DataError as error:
        return error


def _contained(content: bytes, reader: MessageReader) -> Iterator[tuple[str, Read | DataError]]:
    from io import BytesIO

    from fastavro import reader as container

    number = 0
    try:
        for number, record in enumerate(container(BytesIO(content)), 1):
            yield f"record {number}", reader.read_record(record)  # type: ignore[arg-type]  # messages are records
    except DataError as error:
        yield f"record {number}", error
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever a damaged file makes it run into
        yield (
            f"after record {number}",
            DataError(f"The container is damaged here ({type(error).__name__}); write it anew."),
        )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}.") from None


def _as_json(place: str, found: Read | DataError) -> str:
    what = {"error": str(found)} if isinstance(found, DataError) else msgspec.to_builtins(found, builtin_types=())
    return msgspec.json.encode({"place": place, **what}, enc_hook=str).decode()


def _as_text(found: Read | DataError) -> str:
    if isinstance(found, DataError):
        return f"ERROR {found}"
    if found.kind == "metadata":
        content = found.content or {}
        columns = ", ".join((content.get("tableStructure") or {}).get("tableColumns") or ())
        version = (content.get("lineage") or {}).get("tableVersion")
        return f"METADATA {found.table} version {version}, schema {found.schema_id}: {columns}"
    if found.kind != "data":
        return f"{found.kind.upper()} {found.note or ''}".rstrip()
    row = msgspec.json.encode(found.row, enc_hook=str).decode()
    changed = f" changed {', '.join(found.changed) or 'nothing'}" if found.changed is not None else ""
    before = f" before {msgspec.json.encode(found.before, enc_hook=str).decode()}" if found.before else ""
    return (
        " ".join([str(part) for part in (found.operation, found.table, found.sequence) if part])
        + f" {row}{before}{changed}"
    )
