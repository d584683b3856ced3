"""The outputs as the page shows them: named without opening one and without a secret, and how each stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from eventlog.config.build import former_names_of, name_of
from eventlog.config.outputs import KafkaOutput, OutputConfig, StdoutOutput
from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError
from eventlog.core.secrets import masked
from eventlog.delivery.output import OutputState, OutputStates
from eventlog.sources.notes import Progress, read_positions
from eventlog.web.reading import OutputView

Said = TypeVar("Said")


def named_outputs(config: Config) -> tuple[OutputView, ...]:
    """Each output, with the name that its notes have."""
    return tuple(
        OutputView(
            name=output.name or _place(output),
            noted=name_of(output),
            former_names=former_names_of(output),
            format=str(output.format),
        )
        for output in config.output or (StdoutOutput(),)
    )


def with_standings(
    places: Sequence[OutputView], found: OutputStates, notes: Mapping[str, str]
) -> tuple[OutputView, ...]:
    """The outputs with how they stand, and what the notes about the batch in hand say of them."""
    return tuple(
        _noted(replace(place, standing=_of(place, found) or OutputState()), _of(place, notes)) for place in places
    )


def _of(place: OutputView, found: Mapping[str, Said]) -> Said | None:
    """What is said of an output under its name, else under a former one."""
    return next((found[name] for name in (place.noted, *place.former_names) if name in found), None)


def _noted(place: OutputView, note: str | None) -> OutputView:
    if note is None:
        return place
    try:
        progress = msgspec.json.decode(note, type=Progress)
        done = read_positions(progress.done)
    except (msgspec.MsgspecError, EventlogError):
        return place
    standing = place.standing
    if done and (standing.position is None or standing.position < max(done)):
        standing = replace(standing, position=max(done), document=progress.after or standing.document)
    return replace(place, standing=standing, on_the_way=len(progress.planned))


def _place(output: OutputConfig) -> str:
    tag, path, url = output.__struct_config__.tag, getattr(output, "path", None), getattr(output, "url", None)
    if isinstance(output, KafkaOutput):
        return f"{tag} {output.servers} {output.transactional_id}"
    if isinstance(path, str):
        return f"{'change tables' if output.format == 'change-tables' else tag} {Path(path).resolve()}"
    if isinstance(url, str):
        return f"{tag} {masked(_without_secrets(url))}"
    return str(tag)


def _without_secrets(url: str) -> str:
    """The address without user, password, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
