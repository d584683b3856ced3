"""A first configuration, as `eventlog init` writes it: the answers in force, and as comments what
one may want next.

Law: no secret gets into the text. In the place of each one stands `${NAME}`, which is read from the
environment.
"""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from string import Template
from typing import Final, Literal, get_args
from urllib.parse import quote

from msgspec import Struct

from eventlog.config.secret_values import NAMED_SECRET
from eventlog.config.settings import from_settings
from eventlog.core.errors import UsageError
from eventlog.core.secrets import HIDDEN, mask_secrets, visible

Sink = Literal["files", "stdout", "http", "database", "kafka"]
SINKS: Final[tuple[Sink, ...]] = get_args(Sink)
PLACES: Final = {
    "files": ("path", "A folder"),
    "http": ("url", "The address that documents are POSTed to"),
    "database": ("url", "The database of the change tables, as a SQLAlchemy URL"),
    "kafka": ("servers", "The brokers to begin with, as host:port,host:port"),
}
"""Under which key an output has its place, and what that is."""

FORMATS: Final = {"database": "change-tables", "kafka": "messages"}
"""What goes to an output that takes no XDS documents, or seldom does."""

USUAL: Final = (
    (
        "allow_loopback",
        "false",
        "Publish the changes of the publisher's own database user too: for a first try with one user.",
    ),
    ("batch_size", "1", "Changes in one document, 1 to 128."),
    (
        "polling_interval",
        "10",
        "Seconds between two cycles when there is nothing to do. New rows are noticed sooner, see wake_up.",
    ),
    ("on_error", '"continue"', "continue, or halt: end the publisher with exit code 65 when a row ended as an error."),
)
"""Keys of [publisher] that people often want, with their defaults and what they do."""

SCHEMA_FILE: Final = "eventlog.schema.json"
SAMPLE: Final = "x" * 16
"""Stands for a secret while the answers are checked; some secrets must have so many characters."""

_blank = re.compile(r"\s")
# JSON escapes all of these but the last, DEL, and TOML wants that escaped too.
_unsaid = re.compile(r"[\x00-\x1f\x7f]")


class FirstAnswers(Struct, frozen=True, kw_only=True):
    """What a first configuration is made from."""

    url: str
    log: str = "event_log"
    schema: str | None = None
    tables: tuple[str, ...] = ()
    sink: Sink = "files"
    place: str = "out"
    user: str | None = None
    publisher: Mapping[str, str] = {}
    """Keys of [publisher] with their values in TOML."""
    policy: str = ""
    """A policy of the output, in TOML; its name is the first that stands there."""
    has_triggers: bool = False
    """Whether others fill the log."""
    remarks: tuple[str, ...] = ()


class First(Struct, frozen=True, kw_only=True):
    """The text of a configuration, and the names that the environment must have for it."""

    text: str
    names: tuple[str, ...]


def first_configuration(answers: FirstAnswers) -> First:
    """Write the file, a readable one: raise ConfigError or UsageError for an unusable answer."""
    url = without_secrets(answers.url, "DB_PASSWORD")
    target = without_secrets(answers.place, "OUTPUT_PASSWORD")
    text = _write_configuration(answers, url, target)
    from_settings(tomllib.loads(NAMED_SECRET.sub(SAMPLE, text)), {}, origin="This configuration")
    # Files are not asked for: only variables have to be set.
    named = NAMED_SECRET.findall(f"{url} {target}")
    names = dict.fromkeys(name for in_file, name in named if not in_file)
    return First(text=text, names=tuple(names))


def without_secrets(text: str, name: str) -> str:
    """Replace secrets by `${NAME}`, `${NAME_2}` …

    One that is written so already stays.
    """
    scheme, mark, rest = text.partition("://")
    login, at, address = rest.rpartition("@")
    text = scheme + mark + _blank.sub(lambda match: quote(match[0]), login) + at + address
    hidden = NAMED_SECRET.sub(HIDDEN, text)
    if hidden != text:
        if mask_secrets(hidden) != hidden:
            raise UsageError("One secret is written as ${NAME} and another one is not; write both as ${NAME}.")
        return text
    first, *others = mask_secrets(text).split(HIDDEN)
    names = [name, *(f"{name}_{number}" for number in range(2, len(others) + 1))]
    # Where there is no secret there is still one name, and nothing that follows it.
    return first + "".join(f"${{{variable}}}{part}" for variable, part in zip(names, others, strict=False))


def next_commands(answers: FirstAnswers) -> list[str]:
    if answers.has_triggers:
        return [f"eventlog {words}" for words in ("install", "check", "run --look", "run")]
    tables = " ".join(map(shlex.quote, answers.tables)) or "TABLE"
    # All formats but XDS tell whole rows.
    style = "" if FORMATS.get(answers.sink, "xds") == "xds" else " --events image"
    return [f"eventlog {words}" for words in ("install", f"track {tables}{style}", "check", "run")]


def _write_configuration(answers: FirstAnswers, url: str, target: str) -> str:
    template = Template(files("eventlog.init").joinpath("first_configuration.txt").read_text(encoding="utf-8"))
    schema, user = '# schema = "app"', '# user = "publisher"'
    if answers.schema:
        schema = f"schema = {quote_text(answers.schema)}"
    if answers.user:
        user = f"user = {quote_text(answers.user)}"
    if answers.has_triggers and answers.tables:
        user += f"\n# The captured tables and views.\ntables = [{', '.join(map(quote_text, answers.tables))}]"
    policy_name = ""
    if answers.policy:
        policy_name = f"policies = [{quote_text(tomllib.loads(answers.policy)['policy'][0]['name'])}]\n"
    place_lines = ""
    if answers.sink in PLACES:
        key, meaning = PLACES[answers.sink]
        place_lines = f"# {meaning}.\n{key} = {quote_text(target)}\n"
    return template.substitute(
        url=quote_text(url),
        log=quote_text(answers.log),
        schema=schema,
        sink=quote_text(answers.sink),
        format=quote_text(FORMATS.get(answers.sink, "xds")),
        place=place_lines + policy_name,
        user=user,
        publisher=_write_publisher(answers.publisher),
        policy=f"{answers.policy}\n" if answers.policy else "",
        after=_after(answers),
        next="\n".join(f"#   {visible(line)}" for line in next_commands(answers)),
    )


def _write_publisher(given: Mapping[str, str]) -> str:
    """Write the given keys, and as comments those that people often want besides."""
    usual = [f"# {said}\n# {key} = {value}\n" for key, value, said in USUAL if key not in given]
    return "".join([*(f"{key} = {value}\n" for key, value in given.items()), *usual])


def _after(answers: FirstAnswers) -> str:
    """Write the comment behind the output about published rows."""
    if not answers.has_triggers:
        return "# Tables are not listed here: what `eventlog track` tracks is published."
    remarks = "".join(f"# Not taken: {visible(remark)}.\n" for remark in answers.remarks)
    return f"{remarks}# What the triggers of the driver write is published."


def quote_text(text: str) -> str:
    """Write a text as TOML does in one line.

    JSON writes it the same, but for one character that TOML wants escaped.
    """
    # Python writes bytes of a command line that are no UTF-8 as such halves of a pair.
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(
            f"{text!a} holds bytes that are no text in UTF-8.",
            hint="Give it another name.",
        )
    return _unsaid.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))
