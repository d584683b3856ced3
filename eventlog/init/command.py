"""`eventlog init` and `config`: a first configuration file; what is in force and where it came
from; the JSON schema.
"""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Any

import click

from eventlog.cli.asking import can_ask
from eventlog.cli.lazy import LazyGroup
from eventlog.cli.show import say, show_json, show_table
from eventlog.cli.site import DEFAULT_FILE, Site, content_of, json_option, site_options
from eventlog.core.errors import UsageError, name_file
from eventlog.init.first import (
    PLACES,
    SCHEMA_FILE,
    SINKS,
    First,
    FirstAnswers,
    Sink,
    first_configuration,
    next_commands,
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_FILE)
@click.option(
    "--database",
    "-d",
    metavar="URL",
    envvar="EVENTLOG_DATABASE",
    help="The database, as SQLAlchemy URL.",
)
@click.option(
    "--log",
    metavar="NAME",
    help="The event log table, with its schema if it has one (default: event_log).",
)
@click.option(
    "--schema",
    metavar="NAME",
    help="The schema of the tables to capture (default: the connection's own).",
)
@click.option(
    "--table",
    "tables",
    metavar="NAME",
    multiple=True,
    help="A table to capture; can be given several times.",
)
@click.option(
    "--sink",
    "--output",
    "sink",
    type=click.Choice(SINKS),
    help="Where documents go (default: files).",
)
@click.option(
    "--place",
    "--out",
    "place",
    metavar="PLACE",
    help="The folder, URL or brokers of that output (default for files: out).",
)
@click.option(
    "--driver",
    metavar="XML",
    type=click.Path(path_type=Path),
    help="The exported configuration (XML) of a commercial JDBC driver, to continue with its log.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
def init(file: Path, force: bool, **options: Any) -> None:
    """Writes a first configuration file with comments; FILE is eventlog.toml unless you name
    another.

    At a terminal it asks for the rest. Passwords are not written into the file, only
    ${DB_PASSWORD} from the environment. eventlog.schema.json beside the file lets editors
    complete and check keys.

    Example: eventlog init --database postgresql+psycopg://publisher@db.example.net/app --output
    files --place out
    """
    if file.exists() and not force:
        raise UsageError(f"{file} exists already.", hint="Name another file, or use --force to replace it.")
    answers = _answers(**options)
    first = first_configuration(answers)
    with name_file(file):
        file.write_text(first.text, encoding="utf-8")
    for_editors = file.with_name(SCHEMA_FILE)
    # Somebody may have one for all of the files in this folder.
    if force or not for_editors.exists():
        from eventlog.init.editors import schema_text

        with name_file(for_editors):
            for_editors.write_text(schema_text(), encoding="utf-8")
    _say_what_next(file, answers, first)


def _answers(
    database: str | None,
    log: str | None,
    schema: str | None,
    tables: tuple[str, ...],
    sink: Sink | None,
    place: str | None,
    driver: Path | None,
) -> FirstAnswers:
    """Collect answers from options, and from somebody at a terminal for the other questions."""
    from eventlog.sql.dialect import dialect_of

    asks = can_ask()
    if driver is not None:
        return _answers_of_driver(driver, database, log, schema, tables, sink or "files", place)
    if database is None and not asks:
        message = "No database is named, and nobody can be asked here."
        raise UsageError(message, hint="Use --database URL.")
    question = "The database, as SQLAlchemy URL; `eventlog init --help` has an example"
    url = database or _ask(question)
    # Of an unknown database this says which there are, before more is asked.
    with_schemas = dialect_of(url).schemas
    if asks:
        log = log or _ask("The event log table, with its schema if it has one", "event_log")
        if with_schemas and schema is None:
            question = "The schema of the tables to capture; empty is the connection's own"
            schema = _ask(question, "")
        if not tables:
            question = "The tables to capture, with blanks between them; empty is later"
            tables = tuple(_ask(question, "").split())
        if not sink:
            kinds = click.Choice(SINKS)
            sink = click.prompt("Where documents go", type=kinds, default="files", err=True)
    chosen: Sink = sink or "files"
    return FirstAnswers(
        url=url,
        log=log or "event_log",
        schema=schema or None,
        tables=tables,
        sink=chosen,
        place=_target(chosen, place, asks=asks),
    )


def _answers_of_driver(
    file: Path,
    database: str | None,
    log: str | None,
    schema: str | None,
    tables: tuple[str, ...],
    sink: Sink,
    place: str | None,
) -> FirstAnswers:
    """Collect answers from the exported driver, and from options instead."""
    from eventlog.init.driver import read_driver

    found = read_driver(content_of(file), str(file))
    url = database or found.url
    if url is None:
        raise UsageError(f"{file} names no database that eventlog knows.", hint="Use --database URL.")
    return FirstAnswers(
        url=url,
        log=log or found.log or "event_log",
        schema=schema or found.schema,
        tables=tables or found.tables,
        sink=sink,
        place=_target(sink, place, asks=False),
        user=found.user,
        publisher=found.publisher,
        policy=found.policy,
        has_triggers=True,
        remarks=found.left,
    )


def _target(sink: Sink, given: str | None, *, asks: bool) -> str:
    """Choose where an output writes; only a folder has a name that fits everybody."""
    if sink not in PLACES:
        return ""
    key, meaning = PLACES[sink]
    usual = "out" if sink == "files" else None
    if given is None and asks:
        return _ask(meaning, usual)
    if given is None and usual is None:
        raise UsageError(f"An output {sink} needs its {key}.", hint="Use --place PLACE.")
    return given or usual or ""


def _ask(question: str, usual: str | None = None) -> str:
    answer: str = click.prompt(question, default=usual, err=True)
    return answer.strip()


def _say_what_next(file: Path, answers: FirstAnswers, first: First) -> None:
    say(f"{file} is written. It loads as it is; its comments say what else you may want.", err=True, link=file)
    for name in first.names:
        how = "Set it there; a password as it is, not quoted for a URL."
        say(f"It reads {name} from the environment. {how}", err=True)
    config = ""
    if file != DEFAULT_FILE:
        config = f" --config {quote(str(file))}"
    for remark in answers.remarks:
        say(f"Not taken: {remark}.", err=True)
    say("Next:", err=True)
    for command in next_commands(answers):
        say(f"  {command}{config}", err=True)


@click.group(cls=LazyGroup, places={"schema": f"{__name__}:schema"}, invoke_without_command=True)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Show also tables in which nothing is set, such as [output.messages].",
)
@json_option
@site_options
@click.pass_context
def config(context: click.Context, site: Site, everything: bool, as_json: bool) -> None:
    """Shows the configuration in force: every key, its value, and where that came from. Secrets are
    not shown.

    A value comes from the command line, an environment variable, a line of the file, or is the
    default.

    Example: eventlog config --config eventlog.toml
    """
    if context.invoked_subcommand is not None:
        return
    from eventlog.init.origins import settings_in_force, what_was_written

    # What cannot be used is reported before anything is shown.
    in_force = site.config
    written = what_was_written(site.file, os.environ, _options(context))
    settings = settings_in_force(in_force, written, everything=everything)
    if as_json:
        show_json([*settings])
        return
    import msgspec

    rows: list[tuple[str, str, str]] = []
    for setting in settings:
        # Texts, numbers and lists are written in TOML as they are in JSON; what is none is not written.
        value = "" if setting.value is None else msgspec.json.encode(setting.value).decode()
        rows.append((setting.key, value, setting.where or setting.origin))
    show_table(("key", "value", "from"), rows, empty="", paged=True)


@click.command()
def schema() -> None:
    """Prints the JSON schema of configuration files. Editors complete and check keys with it.

    The first line of a file says where the schema is: #:schema ./eventlog.schema.json

    Example: eventlog config schema > eventlog.schema.json
    """
    from eventlog.init.editors import schema_text

    click.echo(schema_text(), nl=False)


def _options(context: click.Context) -> dict[tuple[str | int, ...], tuple[str, str]]:
    """Collect options of the command line, or variables in place of them, with their names."""
    options: dict[tuple[str | int, ...], tuple[str, str]] = {}
    for option, key in (("database", "url"), ("log", "log")):
        value = context.params[option]
        if value is None:
            continue
        origin = f"--{option}"
        if context.get_parameter_source(option) is click.core.ParameterSource.ENVIRONMENT:
            origin = f"EVENTLOG_{option.upper()}"
        options["source", key] = (origin, value)
    return options
