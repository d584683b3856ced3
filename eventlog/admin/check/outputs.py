"""Points about outputs: whether their folder can be written, whether somebody listens at their address."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from eventlog.admin.check.point import Point, failure, ok, warning
from eventlog.config.build import require_packages
from eventlog.config.settings import Config, FilesOutput, HttpOutput
from eventlog.core.errors import ConfigError, EventlogError, SinkError
from eventlog.sinks.http.address import trust


def output_points(config: Config) -> Iterator[Point]:
    """A point for each output; nothing is written and nothing is sent."""
    for number, output in enumerate(config.output, 1):
        name = f"output {number}"
        try:
            require_packages(output)
            if isinstance(output, FilesOutput):
                yield _folder(name, Path(output.path))
            elif isinstance(output, HttpOutput):
                yield _address(name, output)
            else:
                yield ok(name, f"{output.__struct_config__.tag} has the packages that it needs")
        except EventlogError as error:
            yield failure(name, error)


def _folder(name: str, folder: Path) -> Point:
    standing = next(place for place in (folder.absolute(), *folder.absolute().parents) if os.path.lexists(place))
    if not standing.is_dir():
        message = f"{folder} cannot be a folder: {standing} is something else."
        raise ConfigError(message, hint="Change the output's `path`.")
    if not os.access(standing, os.W_OK | os.X_OK):
        message = f"{standing} cannot be written by this user."
        raise ConfigError(message, hint="Change its owner or mode, or the output's `path`.")
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
