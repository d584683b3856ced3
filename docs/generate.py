"""Writes the pages that the program itself knows best: commands, rules, configuration. A test compares them."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
import msgspec
from msgspec import Struct

from eventlog.config.outputs import KINDS
from eventlog.config.policies import PolicyConfig
from eventlog.config.settings import PublisherConfig, SourceConfig
from eventlog.config.web_settings import WebConfig
from eventlog.core.model import Kind
from eventlog.core.policies import Steps
from eventlog.core.policies.steps import STEPS
from eventlog.core.rules.meaning import EXPLANATION, MEANING, PRECEDENCE, STATUS, category_name
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFileSettings
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.linter.settings import LinterSettings

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "reference"
MADE = "<!-- Written by docs/generate.py; ./dev docs writes it anew. -->\n"
SCHEMA = DOCS.parent / "eventlog" / "config" / "eventlog.schema.json"
"""For editors; the command prints it, and docs/plots.py publishes it."""

MEANINGS: dict[str, dict[str, Any]] = tomllib.loads((DOCS / "configuration.toml").read_text(encoding="utf-8"))
TABLES: dict[str, tuple[type[Struct], ...]] = {
    "source": (SourceConfig,),
    "source.gbase": (GBaseSettings,),
    "source.linter": (LinterSettings,),
    "publisher": (PublisherConfig,),
    "web": (WebConfig,),
    "output": KINDS,
    "output.change_tables": (ChangeTableSettings,),
    "output.row_files": (RowFileSettings,),
    "output.messages": (MessageSettings,),
    "policy": (PolicyConfig,),
    "policy.steps": STEPS,
}
"""The sections of the configuration; an output is one of several kinds, and formats have tables of their own in it."""

SEVERAL = ("output", "policy", "policy.steps")
"""Sections of which there may be any number."""

CONFIGURATION = """\
Settings come from a TOML file and from the environment, which wins. Commands read the file that `--config` or
`EVENTLOG_CONFIG` names, else `eventlog.toml` in the current folder if there is one. Options win over both: with `--database` or `--log` the
rest of the file still counts. `--no-config` leaves every file out.

* Each key can come as `EVENTLOG_SECTION__KEY`: `EVENTLOG_PUBLISHER__BATCH_SIZE=128`, and what has keys of its own as
  `EVENTLOG_SOURCE__LINTER__CODE_PAGE=cp1251`. Numbers and lists are written as in TOML, and what a key takes as text is text.
  `EVENTLOG_OUTPUT__…` speaks of the first output. `EVENTLOG_DATABASE` is `source.url`.
* In both, `yes` and `no` are truth values too, and a list may be a text with commas: `time_of_day = "02:00,14:30"`.
* A secret is written `"${NAME}"` and comes from the environment, or `"${file:/run/secrets/pw}"` and comes from a file.
* A key that does not exist is refused, with the nearest that does; so is a value out of its bounds. The exit code is 78.

`eventlog init` writes a first file, with comments. `eventlog config` shows what is in force, and for each value where it comes from: the line of the file, the
variable, the option, or the default. Editors complete and check keys by [the JSON schema](eventlog.schema.json), which `eventlog config schema` prints too. The first line of
a file says where it is: `#:schema ./eventlog.schema.json`; `eventlog init` puts it beside the file.

```toml
[source]
url = "postgresql+psycopg://idm:${DB_PASSWORD}@db.example.net/app"
log = "indirect.event_log"

[publisher]
batch_size = 128

[[output]]
sink = "files"
path = "out/"
```
"""


def pages() -> dict[Path, str]:
    """Every generated page: where it stands and what it should say."""
    sys.path.insert(0, str(DOCS.parent))  # this is run as a script, and its neighbours are modules
    from docs import derived, layers, schema

    made: dict[Path, str] = {FOLDER / "rules.md": rules_page(), FOLDER / "configuration.md": configuration_page()}
    for name in ("errors", "metrics", "grammars"):
        made[FOLDER / f"{name}.md"] = f"{MADE}\n{getattr(derived, f'{name}_page')()}"
    made[layers.PAGE] = layers.page_with_layers()
    made[SCHEMA] = schema.schema(TABLES, said_of)
    if find_spec("eventlog.cli.main"):
        made[FOLDER / "cli.md"] = commands_page()
    return made


def outdated() -> list[Path]:
    """The pages that say something else than the program does."""
    return [path for path, text in pages().items() if not path.exists() or path.read_text() != text]


def rules_page() -> str:
    """The tables of eventlog.core.rules.meaning."""
    return "\n".join([MADE, "# The rules\n", *_types(), "", *_precedence(), "", *_reasons(), ""])


def commands_page() -> str:
    """Every command's help, as a terminal of 100 columns shows it."""
    main = import_module("eventlog.cli.main").main
    assert isinstance(main, click.Group)
    return "\n".join([MADE, "# Commands\n", *_help(main, _context(main, "eventlog"), level=2)])


def configuration_page() -> str:
    """Every key with its type, default, bounds and meaning."""
    return "\n".join([MADE, "# Configuration\n", CONFIGURATION, *_sections()])


def _sections() -> Iterator[str]:
    for section, kinds in TABLES.items():
        yield f"## [[{section}]]\n" if section in SEVERAL else f"## [{section}]\n"
        said = said_of(section)
        yield f"{said['about']}\n"
        for kind in kinds:
            if kind.__struct_config__.tag:
                yield f'### {kind.__struct_config__.tag_field} = "{kind.__struct_config__.tag}"\n'
            if section == "policy.steps":
                yield f"{' '.join((kind.__doc__ or '').split())}\n"
            yield from _keys(kind, said)


def said_of(section: str) -> dict[str, Any]:
    """What is said of a section, and of the tables in it."""
    found = MEANINGS
    for name in section.split("."):
        found = found[name]
    return found


def _keys(kind: type[Struct], said: Mapping[str, Any]) -> Iterator[str]:
    yield "| key | type | default | |"
    yield "| --- | --- | --- | --- |"
    tag = kind.__struct_config__.tag_field
    if tag:
        yield f"| `{tag}` | `{kind.__struct_config__.tag}` | required | {said['keys'][tag]} |"
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        bounds = " to ".join(f"`{end}`" if isinstance(end, str) else f"{end}" for end in said["bounds"].get(name, ()))
        kinds = _type(field.type) + (f", {bounds}" if bounds else "")
        meaning = said["keys"].get(f"{kind.__struct_config__.tag}.{name}") or said["keys"][name]
        yield f"| `{name}` | {kinds} | {_default(field)} | {meaning} |"
    yield ""


def _type(kind: Any) -> str:
    """A type as people write it in TOML."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "a table, see below"
    if get_origin(kind) is dict or get_origin(kind) is Mapping:
        return "a table"
    if kind == Steps:
        return "list of tables, see `[[policy.steps]]`"
    if get_origin(kind) is tuple:
        one = _type(get_args(kind)[0])
        return f"list of {one}" if get_origin(get_args(kind)[0]) is Literal else f"list of {one}s"
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_type(one) for one in get_args(kind) if one is not type(None))
    return {str: "text", int: "whole number", float: "number", bool: "`true`, `false`"}[kind]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if value in (None, "", {}) or isinstance(value, Struct):
        return ""
    return f"`{msgspec.json.encode(value).decode()}`"  # the same in TOML, for all that stands there


def _types() -> Iterator[str]:
    yield "## Event types\n"
    yield "| `event_type` | name | category | operation | former values |"
    yield "| ---: | --- | --- | --- | --- |"
    for kind, meaning in MEANING.items():
        assert kind is not None
        name = Kind(kind).name.lower().replace("_", " ")
        yield f"| {kind} | {name} | {category_name(meaning)} | {meaning.op} | {'go' if meaning.reset else ''} |"


def _precedence() -> Iterator[str]:
    yield "## Within one lifetime of an object, in this order\n"
    for number, (rule, meaning) in enumerate(PRECEDENCE, 1):
        yield f"{number}. **{rule}**: {meaning}"


def _reasons() -> Iterator[str]:
    yield "## Outcomes\n"
    yield "| reason | status | it means that |"
    yield "| --- | --- | --- |"
    for reason, status in STATUS.items():
        yield f"| {reason} | `{status}` | {EXPLANATION[reason]} |"


def _help(command: click.Command, context: click.Context, *, level: int) -> Iterator[str]:
    yield f"{'#' * level} {context.command_path}\n"
    yield f"```text\n{command.get_help(context).rstrip()}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            if not inner.hidden:
                yield from _help(inner, _context(inner, name, context), level=level + 1)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return command.make_context(name, [], parent, resilient_parsing=True, terminal_width=100, max_content_width=100)


def differences() -> list[str]:
    """What outdated pages say now and should say."""
    found: list[str] = []
    for path in outdated():
        said = path.read_text().splitlines() if path.exists() else []
        found += unified_diff(
            said, pages()[path].splitlines(), str(path.relative_to(DOCS.parent)), "now", lineterm="", n=1
        )
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(differences()) or 0)
    for page, content in pages().items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(content)
