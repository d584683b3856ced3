"""Points about outputs: each is tried as far as one can try without leaving anything behind."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from eventlog.admin.check.point import Point, failure, ok, unforeseen, warning
from eventlog.config.build import require_packages
from eventlog.config.outputs import DatabaseOutput, FilesOutput, HttpOutput, KafkaOutput, OutputConfig
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, EventlogError, SinkError
from eventlog.sinks.http.address import trust
from eventlog.sql.connect import connect, missing_file

LEAST_FREE_BYTES: Final = 1 << 20
"""With less than this no document of any size gets written."""


def output_points(config: Config) -> Iterator[Point]:
    """A point for each output; nothing stays written and nothing is sent."""
    for number, output in enumerate(config.output, 1):
        name = f"output {output.name or number}"
        try:
            require_packages(output)
            yield from _database(name, output) if isinstance(output, DatabaseOutput) else [_tried(name, output)]
        except EventlogError as error:
            yield failure(name, error)
        except Exception as error:  # noqa: BLE001  # the other outputs are tried all the same
            yield failure(name, unforeseen(error))


def _tried(name: str, output: OutputConfig) -> Point:
    if isinstance(output, FilesOutput):
        return _folder(name, Path(output.path))
    if isinstance(output, HttpOutput):
        return _address(name, output)
    if isinstance(output, KafkaOutput):
        return _kafka(name, output)
    return ok(name, "standard output needs nothing")


def _database(name: str, output: DatabaseOutput) -> Iterator[Point]:
    from eventlog.admin.mirror_keys import loose_mirrors
    from eventlog.sinks.database.control import try_tables

    missing = missing_file(output.url)
    if missing is not None:
        yield warning(name, f"The database {missing} does not exist.", "The publisher makes it; is the path right?")
        return
    yield ok(name, try_tables(output))
    engine = connect(output.url)
    try:
        for said, mend in loose_mirrors(engine, output.schema):
            yield warning(name, said, mend)
    finally:
        engine.dispose()


def _kafka(name: str, output: KafkaOutput) -> Point:
    from eventlog.sinks.kafka.registry import registry_of
    from eventlog.sinks.kafka.topics import missing_topics

    wanted = [output.topic if output.format == "xds" else output.messages.topic]
    if output.format == "messages" and output.messages.mode == "metadata":
        wanted.append(output.messages.metadata_topic)
    missing = missing_topics(output, [topic for topic in wanted if topic and "{" not in topic])
    if output.format == "messages" and output.messages.mode == "registry":
        registry_of(output).reach()
    if missing and not output.create_topics:
        said = f"Kafka at {output.servers} has no topic {missing[0]} yet."
        return warning(name, said, "Create it, or set output.create_topics = true; a broker may also make it itself.")
    return ok(name, f"Kafka at {output.servers} takes our login")


def _folder(name: str, folder: Path) -> Point:
    standing = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
    if not standing.is_dir():
        message = f"{folder} cannot be a folder: {standing} is something else."
        raise ConfigError(message, hint="Change the output's `path`.")
    if not os.access(standing, os.W_OK | os.X_OK):
        message = f"{standing} cannot be written by this user."
        raise ConfigError(message, hint="Change its owner or mode, or the output's `path`.")
    if shutil.disk_usage(standing).free < LEAST_FREE_BYTES:
        message = f"The disk of {standing} is full."
        raise SinkError(message, hint="Make room, or change the output's `path`.")
    if standing != folder.absolute():
        return warning(name, f"The folder {folder} does not exist.", "The publisher makes it; is a volume not mounted?")
    return ok(name, f"the folder {folder} can be written")


def _address(name: str, output: HttpOutput) -> Point:
    parts = urlsplit(output.url)
    host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
    place = f"{parts.scheme}://{host}:{port}"
    context = trust(output) if parts.scheme == "https" else None
    try:
        with closing(socket.create_connection((host, port), timeout=output.connect_timeout)) as reached:
            if context is not None:
                context.wrap_socket(reached, server_hostname=host).close()
    except OSError as error:
        hint = "Start what listens there, or change the output's `url`."
        raise SinkError(f"{place} cannot be reached: {error.strerror or error}.", hint=hint) from error
    return ok(name, f"{place} takes connections")
