"""Writes the pages that the program itself knows best: commands, rules, configuration. A test compares them."""

from __future__ import annotations

import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import unified_diff
from importlib import import_module
from importlib.util import find_spec
from inspect import cleandoc
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import click
import msgspec
from msgspec import Struct

from eventlog.config.outputs import formats_of, whole_kind
from eventlog.config.settings import PublisherConfig
from eventlog.core.model import Kind
from eventlog.core.registry import offers, sink_named, table_named
from eventlog.core.rules.meaning import EXPLANATION, MEANING, PRECEDENCE, STATUS
from eventlog.explain.rules_command import category_name
from eventlog.init.editors import whole_source
from eventlog.policies.settings import PolicyConfig
from eventlog.policies.steps import STEPS, Steps
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.change_files.settings import RowFileSettings
from eventlog.sinks.events.settings import CloudEventsSettings, DebeziumSettings, JsonLinesSettings
from eventlog.sinks.scim.settings import ColumnSettings, ResourceSettings, ScimSettings
from eventlog.sinks.store.address import StoreSettings
from eventlog.sources.compare.settings import CompareSettings, QuerySettings
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.linter.settings import LinterSettings

DOCS = Path(__file__).resolve().parent
FOLDER = DOCS / "reference"
MADE = "<!-- Written by docs/generate.py; ./dev docs writes it anew. -->\n"
TABLES_BEGIN = "<!-- tables: written by docs/generate.py -->\n"
TABLES_END = "<!-- end of the tables -->\n"
WEBHOOKS = DOCS / "how-to" / "webhooks.md"
SCHEMA = DOCS.parent / "eventlog" / "config" / "eventlog.schema.json"
"""For editors; the command prints it, and docs/plots.py publishes it."""

MEANINGS: dict[str, dict[str, Any]] = tomllib.loads((DOCS / "configuration.toml").read_text(encoding="utf-8"))
TABLES: dict[str, tuple[type[Struct], ...]] = {
    "source": (whole_source(),),
    "source.gbase": (GBaseSettings,),
    "source.linter": (LinterSettings,),
    "source.compare": (CompareSettings,),
    "source.compare.queries": (QuerySettings,),
    "publisher": (PublisherConfig,),
    "web": (table_named("web").settings,),
    "lineage": (table_named("lineage").settings,),
    "query": (table_named("query").settings,),
    "verify": (table_named("verify").settings,),
    "output": tuple(
        whole_kind(sink)
        for sink in ("files", "stdout", "http", "webhook", "scim", "database", "kafka", "delta", "iceberg")
    ),
    "output.change_tables": (ChangeTableSettings,),
    "output.row_files": (RowFileSettings,),
    "output.store": (StoreSettings,),
    "output.messages": (MessageSettings,),
    "output.jsonl": (JsonLinesSettings,),
    "output.debezium": (DebeziumSettings,),
    "output.cloudevents": (CloudEventsSettings,),
    "output.scim": (ScimSettings,),
    "output.scim.tables": (ResourceSettings,),
    "output.scim.tables.columns": (ColumnSettings,),
    "policy": (PolicyConfig,),
    "policy.steps": STEPS,
}
"""The sections of the configuration; an output is one of several kinds, and formats have tables of their own in it."""

SEVERAL = ("output", "policy", "policy.steps")
"""Sections of which there may be any number."""

CONFIGURATION = """\
Settings come from a TOML file (`--config`, else `EVENTLOG_CONFIG`, else `eventlog.toml` here); the environment overrides it, and options override both. `--no-config` ignores every file.

* Each key is also `EVENTLOG_SECTION__KEY`: `EVENTLOG_PUBLISHER__BATCH_SIZE=128`, `EVENTLOG_SOURCE__LINTER__CODE_PAGE=cp1251`. Numbers and lists are written as in TOML. `EVENTLOG_OUTPUT__…` is the first output.
  `EVENTLOG_DATABASE` is `source.url`.
* `yes` and `no` are truth values too, and a list may be text with commas: `time_of_day = "02:00,14:30"`.
* A secret is `"${NAME}"` from the environment, or `"${file:/run/secrets/pw}"` from a file.
* An unknown key is refused, with the nearest known one; so is a value out of its bounds. The exit code is 78.

`eventlog init` writes a first file. `eventlog config` shows the values in force and where each comes from. Editors complete keys by [the JSON schema](eventlog.schema.json) (`eventlog config schema`), if the first line of a file is
`#:schema ./eventlog.schema.json`.

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


COMMANDS = (
    "`eventlog --help` lists the commands; each has `--help` too.",
    "[Exit codes](errors.md) are the same for all commands. Every command takes `--debug`, which shows tracebacks.",
    "Files and pipes get whole values, a line for each row; `COLUMNS=100` lays them out as on a terminal.",
    "Many take these options:\n",
)
SHARED_IN_GROUP = 3
"""An option that so many commands of a group have is told with the group."""

SHARED_COUNT = 5
"""An option that so many commands have, with the same words, stands at the head of the page alone."""

SHARED_WITH_ONE = 3
"""So many options that a command of the same group has told before are only named."""


def pages() -> dict[Path, str]:
    """Every generated page: where it stands and what it should say."""
    sys.path.insert(0, str(DOCS.parent))  # this is run as a script, and its neighbours are modules
    from docs import alerts_guide, debezium, derived, drawn_tables, layers, schema, stable

    made: dict[Path, str] = {FOLDER / "rules.md": rules_page(), FOLDER / "configuration.md": configuration_page()}
    made[debezium.PAGE] = _between_marks(debezium.PAGE, list(debezium.tables())[:-1])
    made[WEBHOOKS] = _between_marks(WEBHOOKS, matrix())
    for name in ("errors", "metrics", "grammars"):
        made[FOLDER / f"{name}.md"] = f"{MADE}\n{getattr(derived, f'{name}_page')()}"
    made[layers.PAGE] = layers.page_with_layers()
    made[stable.PAGE] = stable.page_with_names()
    made[alerts_guide.PAGE] = alerts_guide.alerts_guide()
    made[SCHEMA] = schema.schema(TABLES, said_of)
    made |= {DOCS / "pictures" / name: drawn for name, drawn in drawn_tables.pictures().items()}
    if find_spec("eventlog.cli.main"):
        made[FOLDER / "cli.md"] = commands_page()
    return made


def outdated() -> list[Path]:
    """The pages that say something else than the program does."""
    return [path for path, text in pages().items() if not path.exists() or path.read_text() != text]


def rules_page() -> str:
    """The page about the rules, with the tables of eventlog.core.rules.meaning between its two marks."""
    return _between_marks(FOLDER / "rules.md", [*_types(), "", *_precedence(), "", *_reasons()])


def _between_marks(page: Path, lines: Iterable[str]) -> str:
    """The page, with these lines between its two marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(TABLES_BEGIN)
    tables = "\n".join(lines)
    return f"{before}{TABLES_BEGIN}\n{tables}\n\n{TABLES_END}{rest.partition(TABLES_END)[2]}"


def matrix() -> Iterator[str]:
    """Which format goes to which sink, of those that eventlog has itself, as the registry says it."""
    sinks = [offer.name for offer in offers("sinks") if offer.is_ours]
    formats = [offer.name for offer in offers("formats") if offer.is_ours]
    taken = {sink: formats_of(sink_named(sink)) for sink in sinks}
    yield "| format | " + " | ".join(f"`{sink}`" for sink in sinks) + " |"
    yield "| --- |" + " --- |" * len(sinks)
    for name in formats:
        yield f"| `{name}` | " + " | ".join("yes" if name in taken[sink] else "" for sink in sinks) + " |"


def commands_page() -> str:
    """Every command: how it is called, what it does, an example, a line for each option."""
    main = import_module("eventlog.cli.main").main
    assert isinstance(main, click.Group)
    commands = list(_commands(main, _context(main, "eventlog")))
    counted = Counter(_option(option) for command, _ in commands for option in _options(command))
    shared = {line for line, count in counted.items() if count >= SHARED_COUNT}
    lines = [MADE, "# Commands\n", *COMMANDS, "| option | |", "| --- | --- |"]
    lines += [f"{line}" for line in dict.fromkeys(counted) if line in shared]
    told: dict[str, list[str]] = {}
    for command, context in commands:
        of_group = _of_group(context.parent, shared) if context.parent is not None else []
        own = [row for row in map(_option, _options(command)) if row not in {*shared, *of_group}]
        if context.parent is not None:
            lines += ["", *_help(command, context), *_table_of(own, _siblings(context, told))]
            told[_path(context)] = own
        if common := _of_group(context, shared):
            lines += ["", "Its commands take, beside their own options:"]
            lines += ["", "| option | |", "| --- | --- |", *common]
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*lines, ""]))


def _path(context: click.Context) -> str:
    return context.command_path.removeprefix("eventlog ")


def _siblings(context: click.Context, told: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Find what other commands of the same group have told of their options."""
    group, _, _ = _path(context).rpartition(" ")
    return {name: rows for name, rows in told.items() if group and name.startswith(f"{group} ")}


def _table_of(rows: list[str], siblings: Mapping[str, list[str]]) -> Iterator[str]:
    """Write a command's own options; those that a sibling has told before are named in one row."""
    if not rows:
        return
    yield "\n| option | |\n| --- | --- |"
    for name, before in siblings.items():
        common = [row for row in rows if row in before]
        if len(common) >= SHARED_WITH_ONE:
            options = ", ".join(f"`{row.split()[1].strip('`')}`" for row in common)
            yield f"| {options} | As for `{name}`. |"
            rows = [row for row in rows if row not in before]
    yield from rows


def _of_group(context: click.Context, shared: set[str]) -> list[str]:
    """Options that several commands of a group have, with the same words: they are told once, with the group."""
    group = context.command
    if context.parent is None or not isinstance(group, click.Group):
        return []
    inner = [group.get_command(context, name) for name in group.list_commands(context)]
    counted = Counter(_option(option) for command in inner if command is not None for option in _options(command))
    return [line for line, count in counted.items() if count >= SHARED_IN_GROUP and line not in shared]


def configuration_page() -> str:
    """Every key with its type, default, bounds and meaning."""
    return "\n".join([MADE, "# Configuration\n", CONFIGURATION, *_sections()])


def _sections() -> Iterator[str]:
    for section, kinds in TABLES.items():
        yield f"## [[{section}]]\n" if section in SEVERAL else f"## [{section}]\n"
        said = said_of(section)
        yield f"{said['about']}\n"
        if kinds[0].__struct_config__.tag:
            yield from _kinds(kinds, said)
        else:
            yield "| key | type | default | |\n| --- | --- | --- | --- |"
            yield from (f"| `{name}` | {row}" for name, row in _keys(kinds[0], said))
        yield ""


def _kinds(kinds: tuple[type[Struct], ...], said: Mapping[str, Any]) -> Iterator[str]:
    """A line for each key, with the kinds that have it."""
    tag = kinds[0].__struct_config__.tag_field
    rows: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        for row in _keys(kind, said):
            rows.setdefault(row, []).append(f"`{kind.__struct_config__.tag}`")
    yield f"| key | of `{tag}` | type | default | |\n| --- | --- | --- | --- | --- |"
    for (name, rest), names in rows.items():
        yield f"| `{name}` | {'all' if len(names) == len(kinds) else ', '.join(names)} | {rest}"


def said_of(section: str) -> dict[str, Any]:
    """What is said of a section, and of the tables in it."""
    found = MEANINGS
    for name in section.split("."):
        found = found[name]
    return found


def _keys(kind: type[Struct], said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each key, and the rest of its row: its type, its default and its meaning."""
    for field in msgspec.structs.fields(kind):
        name = field.encode_name
        bounds = " to ".join(f"`{end}`" if isinstance(end, str) else f"{end}" for end in said["bounds"].get(name, ()))
        kinds = _type(field.type) + (f", {bounds}" if bounds else "")
        meaning = said["keys"].get(f"{kind.__struct_config__.tag}.{name}") or said["keys"][name]
        yield name, f"{kinds} | {_default(field)} | {meaning} |"


def _type(kind: Any) -> str:
    """A type as people write it in TOML."""
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Struct):
        return "a table"
    if get_origin(kind) is dict or get_origin(kind) is Mapping:
        return "a table"
    if kind == Steps:
        return "tables"
    if get_origin(kind) is tuple:
        one = _type(get_args(kind)[0])
        return f"list of {one}" if get_origin(get_args(kind)[0]) is Literal else f"{one}s"
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(_type(one) for one in get_args(kind) if one is not type(None))
    return {str: "text", int: "integer", float: "number", bool: "`true`/`false`"}[kind]


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "required"
    value = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if value in (None, "", {}, ()) or isinstance(value, Struct):
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
    yield "## Within one life of an object, in this order\n"
    for number, (rule, meaning) in enumerate(PRECEDENCE, 1):
        yield f"{number}. **{rule}**: {meaning}"


def _reasons() -> Iterator[str]:
    yield "## Outcomes\n"
    yield "| reason | status | it means that |"
    yield "| --- | --- | --- |"
    for reason, status in STATUS.items():
        yield f"| {reason} | `{status}` | {EXPLANATION[reason]} |"


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    yield command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            if not inner.hidden:
                yield from _commands(inner, _context(inner, name, context))


def _options(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and not one.hidden]


def _option(option: click.Option) -> str:
    """A row of a table: the option with its value, and what it does."""
    with click.Context(click.Command("eventlog"), terminal_width=10_000) as context:
        record = option.get_help_record(context)
    assert record is not None
    name, meaning = (text.replace("|", "\\|") for text in record)
    return f"| `{name}` | {meaning} |"


def _help(command: click.Command, context: click.Context) -> Iterator[str]:
    """Write how a command is called, what it does, and examples that say more than its name."""
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").replace(" [OPTIONS]", "").split())
    yield "## {}\n".format(usage.replace("[", "\\["))  # else it would be a link
    examples = []
    for paragraph in cleandoc(command.help or "").split("\n\n"):
        text = " ".join(paragraph.split())
        if text.startswith("Example"):
            examples += [one for one in [text.partition(": ")[2]] if one != context.command_path]
        else:
            yield f"{text}\n"
    if examples:
        yield "\n".join(["```sh", *examples, "```"])


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
