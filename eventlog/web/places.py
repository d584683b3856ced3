"""The outputs of a configuration as the page names them, without opening one and without a secret."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from eventlog.config import Config, StdoutOutput
from eventlog.web.reading import Place

IDLE = "all that was read is delivered"


def named_outputs(config: Config) -> tuple[Place, ...]:
    """Each output with the name that its notes have."""
    return tuple(
        Place(name=_name(output), format=str(output.format), position=IDLE)
        for output in config.output or (StdoutOutput(),)
    )


def _name(output: object) -> str:
    tag = str(getattr(type(output), "__struct_config__").tag)  # noqa: B009  # outputs of other kinds are to come
    path, url = getattr(output, "path", None), getattr(output, "url", None)
    if isinstance(path, str):
        return f"{tag} {Path(path).resolve()}"
    if isinstance(url, str):
        parts = urlsplit(url)
        host = parts.hostname or ""
        netloc = f"{host}:{parts.port}" if parts.port else host
        return f"{tag} {parts._replace(netloc=netloc, query='', fragment='').geturl()}"
    return tag
