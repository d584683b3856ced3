"""What installed packages offer eventlog among their entry points; looked up once a process, loaded
when it is named.

Law: one that cannot be loaded is a sentence with its package and the reason, and all others stand.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.suggest import did_you_mean
from eventlog.version import DISTRIBUTION, STREAMS_TOOLS

if TYPE_CHECKING:
    from eventlog.core.plugins import FormatPlugin, SinkPlugin, SourcePlugin, StepsPlugin, StreamsPlugin, TablePlugin
    from eventlog.core.points import OfferedValue

Group = Literal[
    "sinks",
    "formats",
    "sources",
    "tables",
    "steps",
    "streams",
    "checks",
    "commands",
    "page",
    "background",
    "endpoints",
    "policies",
    "gbase_framings",
    "linter_codecs",
    "databases",
]

GROUPS: Final[Mapping[Group, tuple[str, str]]] = {
    "sinks": ("sink", "eventlog.core.plugins:SinkPlugin"),
    "formats": ("format", "eventlog.core.plugins:FormatPlugin"),
    "sources": ("source", "eventlog.core.plugins:SourcePlugin"),
    "tables": ("table of the configuration", "eventlog.core.plugins:TablePlugin"),
    "steps": ("what applies steps", "eventlog.core.plugins:StepsPlugin"),
    "streams": ("what publishes streams", "eventlog.core.plugins:StreamsPlugin"),
    "checks": ("check", "eventlog.core.plugins:CheckPlugin"),
    "commands": ("command", "click:Command"),
    "page": ("part of the page", "eventlog.core.plugins:PagePlugin"),
    "background": ("work in the background", "eventlog.core.plugins:BackgroundPlugin"),
    "endpoints": ("endpoint", "eventlog.core.plugins:EndpointPlugin"),
    "policies": ("function of policies", "collections.abc:Callable"),
    "gbase_framings": ("framing of GBase", "collections.abc:Callable"),
    "linter_codecs": ("codec of LINTER", "collections.abc:Callable"),
    "databases": ("database", "eventlog.sql.dialect:Dialect"),
}
"""What one of each group is called, and the type of its entry points, imported with the first."""


OURS: Final = (DISTRIBUTION, STREAMS_TOOLS)
"""The packages of this project that have entry points."""


class Offer(Struct, frozen=True, kw_only=True):
    """A name that a package offers."""

    group: Group
    name: str
    points: tuple[OfferedValue, ...]
    """The entry points of this name: one, unless several packages offer it."""

    @property
    def package(self) -> str:
        """Return the name of the offering package."""
        return self.points[0].package

    @property
    def is_ours(self) -> bool:
        """Return True if it comes with eventlog itself or another wheel of this project."""
        return self.package in OURS

    @property
    def description(self) -> str:
        """Describe the offer and its origin."""
        package = f"the package {self.package} {self.points[0].version}"
        return f"{GROUPS[self.group][0]} {self.name} of {package}"


_generation = 0
"""How often packages came or went: a thread that looked before keeps what it found for nobody."""


def names(group: Group) -> list[str]:
    """List the names on offer in order, loading nothing."""
    return sorted(_list_offers(group, _generation))


def offers(group: Group) -> list[Offer]:
    """List all offers, usable or not."""
    return [offer for _, offer in sorted(_list_offers(group, _generation).items())]


def sink_named(name: str) -> SinkPlugin:
    plugin: SinkPlugin = _load_named("sinks", name)
    return plugin


def format_named(name: str) -> FormatPlugin:
    plugin: FormatPlugin = _load_named("formats", name)
    return plugin


def source_named(name: str) -> SourcePlugin:
    plugin: SourcePlugin = _load_named("sources", name)
    return plugin


def database_named(name: str) -> Any:
    """Load a dialect by name, a type of `eventlog.sql` above this folder."""
    return _load_named("databases", name)


def table_named(name: str) -> TablePlugin:
    plugin: TablePlugin = _load_named("tables", name)
    return plugin


def steps_plugin() -> StepsPlugin:
    """Load the plug-in for the steps of outputs."""
    plugin: StepsPlugin = _load_named("steps", "policies")
    return plugin


def streams_plugin() -> StreamsPlugin:
    """Load the plug-in for publishing a change stream."""
    plugin: StreamsPlugin = _load_named("streams", "captured")
    return plugin


def problem(offer: Offer) -> str | None:
    """Explain why an offer is unusable; load it to find out. None if it works."""
    try:
        load_offer(offer)
    except ConfigError as error:
        return error.message
    return None


@cache
def load_offer(offer: Offer) -> Any:
    """Load the offered value; raise ConfigError naming the package at fault and the cause."""
    if len(offer.points) > 1:
        others = sorted({point.package for point in offer.points} - {offer.package})
        problem = f"The {offer.description} cannot be used: {', '.join(others)} offers that name too."
        raise ConfigError(problem, hint="Uninstall one of them.")
    try:
        value = offer.points[0].load()
    # A package's code runs when it is imported, and may raise whatever it likes.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".rstrip(".")
        problem = f"The {offer.description} cannot be loaded: {reason}."
        raise ConfigError(problem, hint="Update or uninstall it.") from error
    module, _, class_name = GROUPS[offer.group][1].partition(":")
    kind = getattr(import_module(module), class_name)
    if not isinstance(value, kind):
        what = f"it is of the type {type(value).__name__}, and not {class_name}"
        raise ConfigError(f"The {offer.description} cannot be used: {what}.", hint="Update or uninstall it.")
    return value


def make_outdated_error(what: str) -> ConfigError:
    """Make the error for eventlog's own entry points being of another version, or of none."""
    problem = f"The package {DISTRIBUTION} that is installed offers no {what}"
    return ConfigError(f"{problem}: it is older than this code, or not whole.", hint="Install it again.")


def forget() -> None:
    """Look anew the next time, where packages came or went."""
    global _generation  # noqa: PLW0603  # one for all threads
    _generation += 1
    # What was loaded goes too, for a package may have come back as another version.
    _list_entry_points.cache_clear()
    _list_offers.cache_clear()
    load_offer.cache_clear()


def _load_named(group: Group, name: str) -> Any:
    known = _list_offers(group, _generation)
    if name not in known:
        raise ConfigError(f"There is no {GROUPS[group][0]} {name}.", hint=did_you_mean(name, known))
    return load_offer(known[name])


@cache
def _list_entry_points(_: int) -> tuple[OfferedValue, ...]:
    from eventlog.core.points import read_points

    return tuple(read_points())


@cache
def _list_offers(group: Group, generation: int) -> Mapping[str, Offer]:
    points: dict[str, list[OfferedValue]] = {}
    for point in _list_entry_points(generation):
        if point.group == f"eventlog.{group}":
            points.setdefault(point.name, []).append(point)
    modules = [point.module for several in points.values() for point in several]
    # In every group eventlog itself offers something, but for what only other packages have.
    if group not in ("policies", "gbase_framings") and not any(module.startswith("eventlog.") for module in modules):
        raise make_outdated_error(group)
    offered = {}
    for name, several in points.items():
        kept = several
        # Ours stands whoever else takes its name; of strangers with one name none does.
        if len(several) > 1:
            kept = [point for point in several if point.package in OURS] or several
        offered[name] = Offer(group=group, name=name, points=tuple(kept))
    return offered
