"""The configuration in force, key by key, and where each value came from: default, file and line,
environment, option.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.config.environment import SEVERAL, settings_in
from eventlog.config.outputs import table_of
from eventlog.config.secret_values import NAMED_SECRET
from eventlog.config.settings import Config, sections_of
from eventlog.config.weak_secrets import find_secrets
from eventlog.core.errors import ConfigError
from eventlog.core.registry import names
from eventlog.core.secrets import HIDDEN, SettingPath, format_path, is_secret, mask_secrets
from eventlog.init.editors import all_tables

Origin = Literal["default", "file", "environment", "option"]
_scheme = re.compile(r"(?:Basic|Bearer)?\s*", re.IGNORECASE).fullmatch


class ConfigSetting(Struct, frozen=True, kw_only=True):
    """A key with its value as it may be shown, and where that came from: a file and its line, a
    variable, an option.
    """

    key: str
    value: Any
    origin: Origin
    where: str | None


class WrittenValue(Struct, frozen=True, kw_only=True):
    """A value as somebody wrote it, with what stands for a secret."""

    value: Any
    origin: Origin
    where: str


def settings_in_force(
    config: Config, written: Mapping[SettingPath, WrittenValue], *, everything: bool = False
) -> Iterator[ConfigSetting]:
    """Yield every key; without `everything` only used tables."""
    secrets = find_secrets(config).words
    leaves: list[tuple[SettingPath, Any]] = []
    for name, section in config.sections():
        leaves += _leaves(section, (name,))
    for name in all_tables():
        if name not in config.tables:
            # One of another package may have nothing by default.
            with suppress(ConfigError):
                leaves += _leaves(config.table(name), (name,))
    if everything:
        # Also the tables of sources that nobody chose.
        written_of = {key_path[1] for key_path, _ in leaves if key_path[0] == "source"}
        for name in names("sources"):
            if table_of(name) not in written_of:
                # One may be of no use here, or have nothing by default.
                with suppress(ConfigError):
                    leaves += _leaves(config.source.table(name), ("source", table_of(name)))
    for key_path, value in leaves:
        by_somebody = written.get(key_path)
        if by_somebody is None and not everything:
            # A key of a section itself is shown, and one of a table in which somebody wrote something;
            # numbers count outputs.
            is_in_table = len([part for part in key_path if isinstance(part, str)]) > 2
            table = key_path[:-1]
            if is_in_table and not any(other[: len(table)] == table for other in written):
                continue
        setting = ConfigSetting(
            key=format_path(key_path),
            value=_show_value(key_path, value, by_somebody, secrets),
            origin="default",
            where=None,
        )
        if by_somebody is not None:
            setting = replace(setting, origin=by_somebody.origin, where=by_somebody.where)
        yield setting


def what_was_written(
    file: Path | None, environment: Mapping[str, str], options: Mapping[SettingPath, tuple[str, str]]
) -> dict[SettingPath, WrittenValue]:
    """Map keys to the values of file, environment and options, the one in force for each.

    Options are (name, value).
    """
    written: dict[SettingPath, WrittenValue] = {}
    text = ""
    if file is not None:
        # Editors on Windows begin a text with a mark.
        text = file.read_text(encoding="utf-8-sig")
        for key_path, (value, line) in lines_of(text).items():
            written[key_path] = WrittenValue(value=value, origin="file", where=f"{file}:{line}")
    # In the order in which they take each other's place: the environment before the file, options
    # before both.
    sections = sections_of(tomllib.loads(text), environment)
    for name, section, path, value in settings_in(environment, sections):
        # Of several outputs a variable speaks of the first.
        outer: SettingPath = (section, 0) if section in SEVERAL else (section,)
        for inner, inner_value in _flat(value, (*outer, *path)):
            written[inner] = WrittenValue(value=inner_value, origin="environment", where=name)
    for key_path, (name, value) in options.items():
        origin: Origin = "option" if name.startswith("--") else "environment"
        written[key_path] = WrittenValue(value=value, origin=origin, where=name)
    return written


def lines_of(text: str) -> dict[SettingPath, tuple[Any, int]]:
    """Map every value of a readable TOML file to its first line.

    The file is cut into the shortest pieces that are TOML by themselves: headings, keys with
    values, comments.
    """
    values: dict[SettingPath, tuple[Any, int]] = {}
    several: dict[SettingPath, int] = {}
    table: SettingPath = ()
    piece, begin = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        piece += f"{line}\n"
        try:
            content = tomllib.loads(piece)
        except tomllib.TOMLDecodeError:
            # A list or a text that goes on in the next line.
            continue
        if piece.lstrip().startswith("["):
            table = _open_table(content, several)
        # A comment, or an empty line, has none.
        elif content:
            values |= {key_path: (value, begin) for key_path, value in _flat(content, table)}
        piece, begin = "", number + 1
    return values


def _open_table(heading: Mapping[str, Any], several: dict[SettingPath, int]) -> SettingPath:
    """Find the table a heading opens; `[[…]]` is one more, and a heading below it means the last
    one.
    """
    table: SettingPath = ()
    inner: Any = heading
    while inner:
        # A heading that is read alone has one name at each level.
        [(name, inner)] = inner.items()
        table += (name,)
        if isinstance(inner, list):
            several[table] = several.get(table, -1) + 1
            inner = inner[0]
        if table in several:
            table += (several[table],)
    return table


def _flat(value: Any, key_path: SettingPath) -> Iterator[tuple[SettingPath, Any]]:
    """Yield the values in tables and lists of tables, each with its key path."""
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _flat(inner, (*key_path, name))
    elif isinstance(value, list) and value and all(isinstance(inner, Mapping) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(inner, (*key_path, number))
    else:
        yield key_path, value


def _leaves(value: Any, key_path: SettingPath) -> Iterator[tuple[SettingPath, Any]]:
    if isinstance(value, Struct):
        about = value.__struct_config__
        # msgspec keeps the tag, which is `sink` or `do`, apart from the fields.
        if about.tag_field:
            yield (*key_path, about.tag_field), about.tag
        for field in msgspec.structs.fields(value):
            yield from _leaves(getattr(value, field.name), (*key_path, field.encode_name))
    elif isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*key_path, str(name)))
    elif isinstance(value, tuple) and value and isinstance(value[0], Struct):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*key_path, number))
    else:
        yield key_path, value


def _show_value(key_path: SettingPath, value: Any, written: WrittenValue | None, secrets: Sequence[str]) -> Any:
    """Hide secrets in a value: `${NAME}` where it was written so."""
    name = str(key_path[-1])
    if written is not None and NAMED_SECRET.search(str(written.value)):
        return _as_written(written.value, name)
    if isinstance(value, tuple | list):
        return [_without(inner, name, secrets) for inner in value]
    return _without(value, name, secrets)


def _as_written(value: Any, name: str) -> Any:
    if isinstance(value, list):
        return [_as_written(inner, name) for inner in value]
    if not isinstance(value, str):
        return value
    if is_secret(name):
        # Beside ${NAME} only the word of a login, as Bearer, is no part of the secret.
        return value if _scheme(NAMED_SECRET.sub("", value)) else HIDDEN
    # Where something else in it is a secret, as a password in a URL, its name is hidden too.
    hidden = NAMED_SECRET.sub(HIDDEN, value)
    if mask_secrets(hidden) != hidden:
        return mask_secrets(hidden)
    return value


def _without(value: Any, name: str, secrets: Sequence[str]) -> Any:
    if not isinstance(value, str):
        return value
    if value and is_secret(name):
        return HIDDEN
    return mask_secrets(value, secrets)
