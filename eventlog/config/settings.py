"""The configuration: TOML and environment, typed, unknown keys refused with a suggestion, secrets
kept out of sight.

Every key can come as `EVENTLOG_SECTION__KEY` from the environment, which wins over the file. A
value written `"${NAME}"` or `"${file:/path}"` is a secret: it is put in only when it is used and
never shown.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import attrgetter, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec import Struct, defstruct
from msgspec.structs import replace

from eventlog.config.environment import PREFIX, SEVERAL, fields_of, fit_value, settings_in, types_of, with_environment
from eventlog.config.outputs import (
    OutputConfig,
    as_declared,
    derive_type,
    fill_table,
    formats_of,
    kinds_of,
    own_key,
    table_of,
    takes,
)
from eventlog.config.secret_values import with_secrets
from eventlog.config.timetable import read_times
from eventlog.core.backoff import Backoff
from eventlog.core.errors import ConfigError
from eventlog.core.file_forms import find_form
from eventlog.core.outputs import refuse_name
from eventlog.core.registry import names, sink_named, source_named, steps_plugin, table_named
from eventlog.core.seams import OnValue
from eventlog.core.secrets import SecretSettings
from eventlog.core.suggest import did_you_mean, nearest
from eventlog.sql.clocks import DATABASE, zone_of
from eventlog.sql.names import LogNames, names_wanted, read_log_name

if TYPE_CHECKING:
    from eventlog.config.wrong_keys import Sections

__all__ = ["Config", "OutputConfig", "PublisherConfig", "SourceConfig", "load"]

LOG: Final = "log"
"""The kind of source that is a table in a database: the one that is no stream."""

Choice = Literal["auto", "new", "old", "new by bytes", "old by bytes", "new by letters", "old by letters"]


def within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name} is {value}; it must be between {low} and {high}.")


class SourceConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where changes come from. `tables` are the captured ones, by default every table and view of
    the schema.

    `schema` is where the tables stand; a database without schemas only gets it as a name in
    associations. `reader` is the URL of a login that may do nothing but read the captured tables:
    to read a table, a database may run functions of its owner's, and those have the rights of who
    reads. Without it the publisher reads them itself. `clock` is whose time event_time is in a log
    that others fill: utc, the database's, or that of a zone such as Asia/Tokyo. The timeouts are in
    seconds: how long the publisher lets a statement run, and how long it waits for a lock.
    """

    url: str = ""
    reader: str = ""
    kind: str = "log"
    log: str = "event_log"
    columns: Choice | tuple[str, ...] = "auto"
    clock: str = "utc"
    user: str | None = None
    schema: str | None = None
    sequence: str | None = None
    tables: tuple[str, ...] = ()
    statement_timeout: float | None = None
    lock_timeout: float | None = None
    schema_file: str = ""

    @property
    def own(self) -> Any:
        """Return the table of the source's kind, such as [source.gbase]."""
        return self.table(self.kind)

    def table(self, kind: str) -> Any:
        """Return the table of a kind of source with its defaults."""
        table = table_of(kind)
        return fill_table(getattr(self, table, None), source_named(kind).settings, f"source.{table}")

    @property
    def marks(self) -> str:
        """Return the file, or the URL of the database, with the position of a stream."""
        return str(source_named(self.kind).marks(self.own))

    @property
    def wanted_names(self) -> LogNames:
        """Return the log's names as configured; its table tells their real form."""
        names = read_log_name(self.log)
        return replace(names, sequence=self.sequence, columns=names_wanted(self.columns), clock=self.clock)

    def __post_init__(self) -> None:
        if self.clock != DATABASE:
            zone_of(self.clock)
        for name in ("statement_timeout", "lock_timeout"):
            if getattr(self, name) is not None:
                within(f"source.{name}", getattr(self, name), 0.001, 86_400)


class PublisherConfig(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the publisher goes about it.

    Names, defaults and meaning are those of the product's Publisher channel.

    Beyond it: `query_bytes` bounds what the values of the rows on their way have together,
    `value_limit` what those of one row may have to be published at all. With `wake_up` rows are
    noticed at once where the database allows that, between the intervals. With `follow` the
    triggers of a table that has changed are made anew, at the next poll at the latest. Changes whose session said what one of
    `loopback_contexts` matches, such as "sync*", are not published. What a receiver does not take is offered again after `retry_first` seconds, then after twice as many,
    up to `retry_longest`, and `max_attempts` times (0: for ever); so is a table that cannot be read
    back, or that somebody has locked for longer than `read_back_timeout` seconds. `lease` is how many seconds a
    publisher that died keeps others waiting where the database has no locks that end with a
    session. With `traces` each batch is sent to OpenTelemetry. An output that is paused for longer
    than `max_paused_seconds`, or is more than `max_paused_rows` behind, is a failure to `check`.
    """

    polling_interval: int = 10
    time_of_day: tuple[str, ...] = ()
    wake_up: bool = True
    follow: bool = False
    batch_size: int = 1
    query_limit: int = 10_000
    query_bytes: int = 32_000_000
    value_limit: int = 64_000_000
    read_back_timeout: float = 5.0
    allow_loopback: bool = False
    loopback_contexts: tuple[str, ...] = ()
    handle_future_events: bool = False
    delete_from_log: bool = False
    post_poll_statements: tuple[str, ...] = ()
    heartbeat_interval: float = 0
    on_retry: Literal["stop", "object"] = "stop"
    retry_first: float = 1.0
    retry_longest: float = 60.0
    max_attempts: int = 0
    on_error: Literal["continue", "halt"] = "continue"
    lease: float = 5.0
    coalesce: bool = False
    time_syntax: Literal[1, 2, 3] = 3
    on_value: OnValue = "omit"
    enable_refs: bool = True
    traces: bool = False
    max_paused_seconds: float = 604_800
    max_paused_rows: int = 1_000_000

    @property
    def backoff(self) -> Backoff:
        """Return the waits between attempts to deliver."""
        return Backoff(first=self.retry_first, longest=self.retry_longest)

    def __post_init__(self) -> None:
        within("publisher.polling_interval", self.polling_interval, 1, 604_800)
        within("publisher.batch_size", self.batch_size, 1, 128)
        within("publisher.query_limit", self.query_limit, 0, 2_147_483_647)
        within("publisher.query_bytes", self.query_bytes, 100_000, 1_000_000_000)
        within("publisher.value_limit", self.value_limit, 1_000, 1_000_000_000)
        within("publisher.read_back_timeout", self.read_back_timeout, 0.1, 3_600)
        within("publisher.heartbeat_interval", self.heartbeat_interval, 0, 2_147_483_647)
        within("publisher.max_attempts", self.max_attempts, 0, 2_147_483_647)
        within("publisher.retry_first", self.retry_first, 0, 86_400)
        within("publisher.retry_longest", self.retry_longest, self.retry_first, 86_400)
        within("publisher.lease", self.lease, 0.5, 3_600)
        within("publisher.max_paused_seconds", self.max_paused_seconds, 0, 31_622_400)
        within("publisher.max_paused_rows", self.max_paused_rows, 0, 2_147_483_647)
        read_times(self.time_of_day)


class Config(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be configured.

    `tables` are those that capabilities bring, as far as somebody wrote them: `table` gives one.
    """

    source: SourceConfig = SourceConfig()
    publisher: PublisherConfig = PublisherConfig()
    output: tuple[OutputConfig, ...] = ()
    policy: tuple[Any, ...] = ()
    tables: Mapping[str, Any] = {}

    def table(self, name: str) -> Any:
        """Return the table of a capability with its defaults."""
        return fill_table(self.tables.get(name), table_named(name).settings, name)

    def sections(self) -> Iterator[tuple[str, Any]]:
        """Yield every section, those of capabilities as far as somebody wrote one."""
        for name in CORE_SECTIONS:
            yield name, getattr(self, name)
        yield from self.tables.items()

    def __post_init__(self) -> None:
        for number, output in enumerate(self.output):
            if output.name:
                refuse_name(f"output[{number}].name", output.name)
            within(f"output[{number}].max_behind_rows", output.max_behind_rows, 0, 1_000_000_000)
            within(f"output[{number}].max_behind_seconds", output.max_behind_seconds, 0, 31_622_400)
        if self.policy or any(output.policies for output in self.output):
            steps_plugin().refuse(self.output, self.policy)
        for name in self.tables:
            table_named(name).check(self)


def load(path: Path | None, environment: Mapping[str, str] | None = None, *, without_url: bool = False) -> Config:
    """Load the configuration of a file, if any, and of the environment; `without_url` where another URL
    takes its place.

    Then the needs of the URL, such as a password in the environment, are not asked for.
    """
    environment = os.environ if environment is None else environment
    origin = str(path) if path is not None else "the environment"
    settings, text = _read(path) if path is not None else ({}, "")
    sections = sections_of(settings, environment)
    _refuse_unknown(settings, origin, sections, text)
    _refuse_misspelt_sections(environment, sections)
    for variable, section, keys, value in settings_in(environment, sections):
        alone = reduce(lambda inner, key: {key: inner}, reversed(keys), value)
        _refuse_unknown_keys(section, alone, variable, sections[section], sections)
    with_environment(settings, environment, sections)
    if without_url:
        settings.get("source", {}).pop("url", None)
    return _make_config(settings, environment, origin, sections)


def from_settings(settings: dict[str, Any], environment: Mapping[str, str], *, origin: str) -> Config:
    """Make a configuration from plain values; raise ConfigError naming the key, its value's type and what
    fits.
    """
    sections = sections_of(settings)
    _refuse_unknown(settings, origin, sections)
    return _make_config(settings, environment, origin, sections)


def _make_config(settings: dict[str, Any], environment: Mapping[str, str], origin: str, sections: Sections) -> Config:
    """Make a configuration of settings without unknown keys."""
    own = tuple(name for name in sections if name not in CORE_SECTIONS)
    kind = make_config_type(sections["output"], *sections["source"], own, sections["policy"])
    try:
        given = fit_value(with_secrets(settings, environment), (kind,))
        typed: Any = msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        from eventlog.config.wrong_keys import describe_problem, find_near_choice

        for variable, section, keys, _ in settings_in(environment, sections):
            table = f"{section}[0]" if section in SEVERAL else section
            if str(error).endswith(f" - at `$.{'.'.join((table, *keys))}`"):
                origin = variable
        problem = str(error)
        raise ConfigError(
            f"{origin}: {describe_problem(problem, sections)}", hint=find_near_choice(problem, sections)
        ) from None
    if typed.source.kind != LOG and typed.source.kind not in names("sources"):
        kinds = sorted([LOG, *names("sources")])
        near = nearest(typed.source.kind, kinds)
        hint = f"Did you mean {near}?" if near else None
        if typed.source.kind in names("databases"):
            hint = "Which database it is says source.url; leave source.kind out for a log in it."
        raise ConfigError(f"{origin}: source.kind takes {', '.join(kinds)}.", hint=hint)
    for number, output in enumerate(typed.output):
        refuse_format(f"{origin}: output[{number}].format", output)
    written = {name: getattr(typed, name) for name in own if name in given}
    core = {name: getattr(typed, name) for name in CORE_SECTIONS}
    core["output"] = tuple(map(as_declared, typed.output))
    return Config(**core, tables=written)


@cache
def source_kind(tables: tuple[str, ...]) -> type[SourceConfig]:
    """Make the type of a source with the tables of these kinds, which are names of sources."""
    own = {table_of(name): source_named(name).settings for name in tables}
    if not own:
        return SourceConfig
    return derive_type(SourceConfig, [own_key(table, settings) for table, settings in own.items()])


def _sources_named(settings: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the kinds of sources that these settings choose, or have a table of."""
    given = settings.get("source")
    source: Mapping[str, Any] = given if isinstance(given, dict) else {}
    chosen = environment.get("EVENTLOG_SOURCE__KIND", source.get("kind", LOG))
    tables = {key for key, value in source.items() if isinstance(value, dict)}
    tables |= {match[1].lower() for match in map(_of_a_source, environment) if match is not None}
    tables.difference_update(map(attrgetter("encode_name"), fields_of(SourceConfig)))
    if chosen != LOG or tables:  # else nobody needs to know what is installed
        yield from (name for name in names("sources") if name == chosen or table_of(name) in tables)


_of_a_source = re.compile(r"EVENTLOG_SOURCE__([^_].*?)(?:__|$)").match


@cache
def make_config_type(
    kinds: tuple[type[Struct], ...],
    source: type[Struct],
    tables: tuple[str, ...],
    policies: tuple[type[Struct], ...] = (),
) -> type[Struct]:
    """Make the type of a file: outputs of these types, a source of this one, these tables of capabilities,
    and policies, where there are any.
    """
    union: Any = reduce(or_, kinds) if kinds else OutputConfig
    policy: Any = policies[0] if policies else Any
    sections: list[tuple[str, Any, Any]] = [
        ("source", source, source()),
        ("publisher", PublisherConfig, PublisherConfig()),
        ("output", tuple[union, ...], ()),
        ("policy", tuple[policy, ...], ()),
        *[own_key(name, table_named(name).settings) for name in tables],
    ]
    return defstruct("Config", sections, frozen=True, kw_only=True, forbid_unknown_fields=True)


def may_be_table(name: str) -> bool:
    return name.isidentifier() and name not in CORE_SECTIONS


def refuse_format(key: str, output: OutputConfig) -> None:
    """Raise ConfigError if the sink does not take the format, or it does not exist."""
    sink = sink_named(output.sink)
    if output.format not in names("formats") or not takes(sink, output.format):
        raise ConfigError(f"{key} takes {', '.join(formats_of(sink))}.")


ONE_TEXT: Final = "It is a text in TOML and in UTF-8; `eventlog init` writes one."


def _read(path: Path) -> tuple[dict[str, Any], str]:
    text = ""
    try:
        data = path.read_bytes()
        if form := find_form(data):
            raise ConfigError(f"The configuration file {path} {form}.", hint=ONE_TEXT)
        text = data.decode("utf-8-sig")
        return tomllib.loads(text), text
    except FileNotFoundError:
        raise ConfigError(
            f"The configuration file {path} does not exist.", hint="--config FILE names another."
        ) from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"The configuration file {path} is not UTF-8 in line {line}; save it as UTF-8.") from None
    except OSError as error:
        message = f"The configuration file {path} cannot be read: {error.strerror}."
        raise ConfigError(message, hint="Name a file that this user may read: --config FILE.") from None
    except ValueError as error:  # no TOML, or more digits than a number may have
        from eventlog.config.toml_mistakes import explain_mistake

        raise ConfigError(f"{path} is not TOML: {error}.", hint=explain_mistake(text, str(error))) from None


CORE_SECTIONS: Final = ("source", "publisher", "output", "policy")
"""The sections that no capability brings."""


def sections_of(settings: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Sections:
    """Map these settings' sections to their types: for outputs, to the keys of the named sinks."""
    environment = {name: value for name, value in (environment or {}).items() if name.startswith(PREFIX)}
    outputs = settings.get("output")
    tables = [*outputs] if isinstance(outputs, list) else []
    # Variables mean the first output, and one of them may say which sink or format it has.
    if any(name.startswith("EVENTLOG_OUTPUT__") for name in environment):
        tables = tables or [{}]
        for key in ("sink", "format", "steps"):
            value = environment.get(f"EVENTLOG_OUTPUT__{key.upper()}")
            if value is not None and isinstance(tables[0], dict):
                tables[0] = tables[0] | {key: value}
    policies: tuple[type[Struct], ...] = ()
    # Without policies nobody needs to know what is installed.
    if "policy" in settings or any(name.startswith("EVENTLOG_POLICY__") for name in environment):
        policies = (steps_plugin().policy,)
    given = {*settings} | {match[1].lower() for match in map(_of_a_table, environment) if match is not None}
    given.difference_update(CORE_SECTIONS)
    capabilities: list[str] = []
    if given:  # else nobody needs to know what is installed
        capabilities = [name for name in names("tables") if name in given and may_be_table(name)]
    return {
        "source": (source_kind(tuple(sorted(_sources_named(settings, environment)))),),
        "publisher": (PublisherConfig,),
        "output": kinds_of(tables),
        "policy": policies,
        **{name: (table_named(name).settings,) for name in capabilities},
    }


_of_a_table = re.compile(r"EVENTLOG_([^_].*?)__").match


def _refuse_misspelt_sections(environment: Mapping[str, str], sections: Sections) -> None:
    """Refuse a variable whose section is nearly one of ours; one of another program is left alone."""
    for name, match in [(name, _of_a_table(name)) for name in environment]:
        section = "" if match is None else match[1].lower()
        if not section or section in sections:
            continue
        near = nearest(section, [*CORE_SECTIONS, *names("tables")])
        if near is not None:
            raise ConfigError(f"{name}: {section} is not a section.", hint=f"Did you mean {near}?")


def _refuse_unknown(settings: Mapping[str, Any], origin: str, sections: Sections, text: str = "") -> None:
    for section, content in settings.items():
        if section not in sections:
            from eventlog.config.wrong_keys import find_home

            home = None if isinstance(content, dict | list) else find_home(section, "", sections)
            if home:
                raise ConfigError(f"{origin}: {section} is above all sections. It is a key of {home}.")
            raise ConfigError(
                f"{origin}: [{section}] is not a section.",
                hint=did_you_mean(section, [*CORE_SECTIONS, *names("tables")]),
            )
        if section not in SEVERAL:
            if not isinstance(content, dict):
                raise ConfigError(f"{origin}: {section} is written as [{section}].")
            _refuse_unknown_keys(section, content, origin, sections[section], sections)
            continue
        tables: list[Any] = content if isinstance(content, list) else []
        if not tables or not all(isinstance(table, dict) for table in tables):
            raise ConfigError(f"{origin}: {section} is written as [[{section}]].")
        for table in tables:
            _refuse_unknown_keys(section, table, origin, sections[section], sections)
        if any("steps" in table for table in tables):
            steps_plugin().refuse_unknown(origin, text, section, tables)


def _refuse_unknown_keys(
    where: str, table: Mapping[str, Any], origin: str, kinds: Sequence[type[Struct]], sections: Sections
) -> None:
    """Refuses a key that none of these kinds has, also in the tables of their keys: the types of
    plug-ins may let it pass.
    """
    known = {field.encode_name for kind in kinds for field in fields_of(kind)}
    if where == "output":
        known.add("sink")
    for key, value in table.items():
        if key not in known:
            # The table of a source that nobody chose may be meant.
            meant = known.union(map(table_of, names("sources"))) if where == "source" else known
            from eventlog.config.wrong_keys import find_home

            home = find_home(key, where, sections, table.get("sink"))
            hint = f"It is a key of {home}." if home else did_you_mean(key, meant)
            raise ConfigError(f"{origin}: {where}.{key} is not a key.", hint=hint)
        tables = [kind for kind in types_of(kinds, key) if isinstance(kind, type) and issubclass(kind, Struct)]
        if tables and isinstance(value, dict):
            _refuse_unknown_keys(f"{where}.{key}", value, origin, tables, sections)
