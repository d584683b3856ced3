"""The outputs of a configuration as the page names them, without opening one and without a secret."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from eventlog.config import Config
from eventlog.outputs import KafkaOutput, OutputConfig, StdoutOutput
from eventlog.web.reading import Place

IDLE = "all that was read is delivered"


def named_outputs(config: Config) -> tuple[Place, ...]:
    """Each output with the name that its notes have."""
    return tuple(
        Place(name=_name(output), format=str(output.format), position=IDLE)
        for output in config.output or (StdoutOutput(),)
    )


def _name(output: OutputConfig) -> str:
    tag, path, url = output.__struct_config__.tag, getattr(output, "path", None), getattr(output, "url", None)
    if isinstance(output, KafkaOutput):
        return f"{tag} {output.servers} {output.transactional_id}"
    if isinstance(path, str):
        return f"{'change tables' if output.format == 'change-tables' else tag} {Path(path).resolve()}"
    if isinstance(url, str):
        return f"{tag} {_without_secrets(url)}"
    return str(tag)


def _without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
