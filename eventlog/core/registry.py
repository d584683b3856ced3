"""What installed packages offer eventlog among their entry points; looked up once a process, loaded when it is named.

Law: one that cannot be loaded is a sentence with its package and the reason, and all others stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.plugins import BackgroundPlugin, CheckPlugin, FormatPlugin, PagePlugin, SinkPlugin, SourcePlugin
from eventlog.core.suggest import did_you_mean
from eventlog.version import DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Group = Literal["sinks", "formats", "sources", "checks", "commands", "page", "background", "policies", "linter_codecs"]
Plugin = TypeVar("Plugin")

GROUPS: Final[Mapping[Group, str]] = {
    "sinks": "sink",
    "formats": "format",
    "sources": "source",
    "checks": "check",
    "commands": "command",
    "page": "part of the page",
    "background": "work in the background",
    "policies": "function of policies",
    "linter_codecs": "codec of LINTER",
}
"""What one of each group is called."""

OWN_GROUPS: Final = ("sinks", "formats", "sources", "page")
"""Groups in which eventlog itself offers something."""

TYPES: Final[Mapping[str, type]] = {
    "sinks": SinkPlugin,
    "formats": FormatPlugin,
    "sources": SourcePlugin,
    "checks": CheckPlugin,
    "page": PagePlugin,
    "background": BackgroundPlugin,
}
"""What an entry point of a group must lead to; a command must be one of click's, and of others nothing is known."""


class Offer(Struct, frozen=True, kw_only=True):
    """A name that a package offers."""

    group: Group
    name: str
    points: tuple[Any, ...]
    """The entry points of this name: one, unless several packages offer it."""

    @property
    def package(self) -> str:
        """The name of the package that offers it."""
        return _package(self.points[0])

    @property
    def is_ours(self) -> bool:
        """Whether it comes with eventlog itself."""
        return self.package == DISTRIBUTION

    @property
    def told(self) -> str:
        """What it is and where it comes from."""
        return f"{GROUPS[self.group]} {self.name} of the package {self.package} {self.points[0].dist.version}"


def names(group: Group) -> list[str]:
    """The names that are offered, in their order; nothing is loaded."""
    return sorted(_offered(group))


def offers(group: Group) -> list[Offer]:
    """What is offered, whether it can be used or not."""
    return [offer for _, offer in sorted(_offered(group).items())]


def sink_named(name: str) -> SinkPlugin:
    return _found("sinks", name, SinkPlugin)


def format_named(name: str) -> FormatPlugin:
    return _found("formats", name, FormatPlugin)


def source_named(name: str) -> SourcePlugin:
    return _found("sources", name, SourcePlugin)


def command_named(name: str) -> Any:
    """The command of click that a package offers."""
    return loaded(_offered("commands")[name])


def problem(offer: Offer) -> str | None:
    """Why what is offered cannot be used; it is loaded to know it."""
    try:
        loaded(offer)
    except ConfigError as error:
        return error.message
    return None


@cache
def loaded(offer: Offer) -> Any:
    """The value that is offered; ConfigError says which package is at fault, and why."""
    if len(offer.points) > 1:
        others = sorted({_package(point) for point in offer.points} - {offer.package})
        problem = f"The {offer.told} cannot be used: {', '.join(others)} offers that name too."
        raise ConfigError(problem, hint="Uninstall one of them.")
    try:
        value = offer.points[0].load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        raise ConfigError(f"The {offer.told} cannot be loaded: {reason}.", hint="Update or uninstall it.") from error
    kind = import_module("click").Command if offer.group == "commands" else TYPES.get(offer.group, object)
    if not isinstance(value, kind):
        what = f"it is of the type {type(value).__name__}, and not {kind.__name__}"
        raise ConfigError(f"The {offer.told} cannot be used: {what}.", hint="Update or uninstall it.")
    return value


def forget() -> None:
    """Looks anew the next time, where packages came or went meanwhile."""
    _offered.cache_clear()
    loaded.cache_clear()


def _found(group: Group, name: str, kind: type[Plugin]) -> Plugin:
    known = _offered(group)
    if name not in known:
        raise ConfigError(f"There is no {GROUPS[group]} {name}.", hint=did_you_mean(name, known))
    value = loaded(known[name])
    assert isinstance(value, kind)
    return value


@cache
def _offered(group: Group) -> Mapping[str, Offer]:
    from importlib.metadata import entry_points

    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=f"eventlog.{group}"):
        points.setdefault(point.name, []).append(point)
    if group in OWN_GROUPS and not any(
        point.module.startswith("eventlog.") for found in points.values() for point in found
    ):
        message = (
            f"The package {DISTRIBUTION} that is installed offers no {group}: it is older than this code, or not whole."
        )
        raise ConfigError(message, hint="Install it again.")
    offered = {}
    for name, found in points.items():
        # Ours stands whoever else takes its name; of strangers with one name none does.
        ours = [point for point in found if _package(point) == DISTRIBUTION]
        offered[name] = Offer(group=group, name=name, points=tuple(ours if ours and len(found) > 1 else found))
    return offered


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "unknown"
