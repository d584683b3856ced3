"""`eventlog config`: what is in force and where it came from, and the JSON schema of configuration files."""

from __future__ import annotations

import os

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.show import show_json, show_table
from eventlog.cli.site import Site, json_option, site_options


@click.group(cls=LazyGroup, places={"schema": "config:schema"}, invoke_without_command=True)
@click.option(
    "--all", "everything", is_flag=True, help="Also tables such as [output.messages] in which nothing is set."
)
@json_option
@site_options
@click.pass_context
def config(context: click.Context, site: Site, everything: bool, as_json: bool) -> None:
    """Shows the configuration in force: every key, its value, and where that came from. Secrets are not shown.

    A value comes from the command line, an environment variable, a line of the file, or is the default.

    Example: eventlog config --config eventlog.toml
    """
    if context.invoked_subcommand is not None:
        return
    from eventlog.config.origins import settings_in_force, what_was_written

    in_force = site.config  # what cannot be used is told before anything is shown
    written = what_was_written(site.file, os.environ, _options(context))
    found = settings_in_force(in_force, written, everything=everything)
    if as_json:
        show_json([*found])
        return
    rows = ((one.key, _in_toml(one.value), one.where or one.origin) for one in found)
    show_table(("key", "value", "from"), rows, empty="", paged=True)


@click.command()
def schema() -> None:
    """Prints the JSON schema of configuration files. Editors complete and check keys with it.

    The first line of a file says where the schema is: #:schema ./eventlog.schema.json

    Example: eventlog config schema > eventlog.schema.json
    """
    from eventlog.cli.init import schema_text

    click.echo(schema_text(), nl=False)


def _options(context: click.Context) -> dict[tuple[str | int, ...], tuple[str, str]]:
    """What the command line says, or a variable in place of an option, with its name."""
    found: dict[tuple[str | int, ...], tuple[str, str]] = {}
    for option, key in (("database", "url"), ("log", "log")):
        value = context.params[option]
        if value is not None:
            of_environment = context.get_parameter_source(option) is click.core.ParameterSource.ENVIRONMENT
            found["source", key] = (f"EVENTLOG_{option.upper()}" if of_environment else f"--{option}", value)
    return found


def _in_toml(value: object) -> str:
    """A value as the file would have it, and nothing for none."""
    import msgspec

    return "" if value is None else msgspec.json.encode(value).decode()
