"""`eventlog convert`: any number of changes in one go, to files, a database or Kafka. A command for
each kind of input: files of a log, the log of a database, streams.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.site import complete_outputs, config_option, json_option
from eventlog.core.errors import UsageError
from eventlog.core.packages import require

PART_EVENTS: Final = 100_000

Decorator = Callable[[Any], Any]

COMMANDS: Final = {name: f"{__name__}:{name}" for name in ("files", "database", "follow", "gbase", "linter")}


class Conversions(LazyGroup):
    """`eventlog convert INPUT` is `convert files INPUT`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or args[0] not in (*COMMANDS, "-h", "--help", "--debug"):
            args = ["files", *args]
        return super().parse_args(ctx, args)


class ConversionCommand(click.Command):
    """One of them; an option that only others have is refused with the names of these."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            others = [
                f"`eventlog convert {other.name}`"
                for other in (files, database, follow, gbase, linter)
                if any(error.option_name in param.opts for param in other.params)
            ]
            if not others:
                raise
            names = " and ".join(others)
            this = f"`eventlog convert {self.name}`"
            raise UsageError(f"{error.option_name} is an option of {names}; this is {this}.") from None


def several(*decorators: Decorator) -> Decorator:
    """Join the options of several commands into one decorator, in order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


class EngineName(click.ParamType):  # type: ignore[type-arg]  # click before 8.2 knows no arguments of it
    """auto, spark, local, or local with its number of processes."""

    name = "engine"
    known = ("auto", "spark", "local")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.known or re.fullmatch(r"local\[[1-9]\d{0,3}\]", value):
            return str(value)
        raise click.BadParameter(
            f"{value!r} is none of auto, spark, local and local[4], of so many processes.", ctx, param
        )

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(name) for name in self.known if name.startswith(incomplete)]


to_what = several(
    click.option(
        "--to",
        type=click.Choice(["xds", "change-tables", "messages"]),
        default="xds",
        show_default=True,
        help="What changes become.",
    ),
    click.option("--out", metavar="DEST", required=True, help="A folder, which is made; or an address: s3://…."),
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["parquet", "csv", "json", "avro"]),
        help="Of change tables: parquet, csv, json; of messages: json, avro. Default: the configuration's.",
    ),
    click.option("--metadata-topic", metavar="NAME", help="Also write metadata messages, into this topic."),
    click.option("--to-database", metavar="URL", help="Change tables into this database."),
    click.option("--kafka", metavar="SERVERS", help="Messages into the topics of this Kafka."),
    click.option(
        "--part-events",
        type=click.IntRange(1),
        default=PART_EVENTS,
        show_default=True,
        metavar="N",
        help="Changes in a part file.",
    ),
)
overwrite_option = click.option("--overwrite", is_flag=True, help="Replace what an earlier conversion left in DEST.")
schema_option = click.option(
    "--schema", metavar="FILE", type=click.Path(path_type=Path), help="Tables, types and keys as JSON."
)
engine_option = click.option(
    "--engine",
    type=EngineName(),
    metavar="NAME",
    default="auto",
    show_default=True,
    help="spark; local, or local[N] with N processes; auto: Spark for addresses, with --master or --conf, and for large "
    "inputs, if it is installed, else local.",
)
on_spark = several(
    click.option("--master", metavar="URL", help="Spark's master (default: local[*])."),
    click.option("--conf", multiple=True, metavar="K=V", help="A setting of Spark; can be given several times."),
)
with_report = several(
    click.option(
        "--strict/--no-strict",
        default=None,
        help="Exit with 65 when there were bad rows, or never because of them (default: when all rows were bad).",
    ),
    click.option(
        "--output",
        metavar="NAME",
        shell_complete=complete_outputs,
        help="Use the policies and settings of this output; if it is a lake, write into it.",
    ),
    config_option("A configuration file."),
    json_option,
)

code_page_option = click.option("--code-page", metavar="NAME", help="The code page of text, e.g. cp1251.")
inputs_argument = click.argument(
    "inputs",
    metavar="INPUT",
    nargs=-1,
    required=True,
    # A shell completes names of files; what else an input may be is looked at later.
    type=click.Path(readable=False),
)


@click.group(cls=Conversions, places=COMMANDS)
def convert() -> None:
    """Converts a whole backlog: rows of an event log or a captured stream become XDS documents,
    change tables or messages.

    `files` may be left out: `eventlog convert INPUT` converts files. DEST is complete when it has
    _SUCCESS; if a part of a stream is missing, it has _DAMAGED, and the exit code is 65.

    Example: eventlog convert archive/ --schema schema.json --out documents/
    """


@click.command(cls=ConversionCommand)
@inputs_argument
@to_what
@overwrite_option
@schema_option
@click.option("--database", "-d", metavar="URL", help="The database that answers query-backs.")
@click.option("--snapshot", metavar="DIR", help="Files that answer query-backs.")
@engine_option
@on_spark
@with_report
def files(**given: Any) -> int:
    """Converts rows of a log in files.

    INPUT is a file (Parquet, JSON lines, CSV), a folder, a pattern or an address.

    Example: eventlog convert files archive/ --schema schema.json --out documents/
    """
    return _run("files", given)


log_argument = click.argument("url", metavar="URL")
log_option = click.option("--log", metavar="NAME", help="The event log table.")


@click.command(cls=ConversionCommand)
@log_argument
@log_option
@click.option("--status", "statuses", metavar="LETTERS", help="Rows with these statuses (default: N).")
@click.option("--mark", is_flag=True, help="Write the status of the rows into the database; no publisher may work.")
@to_what
@overwrite_option
@engine_option
@on_spark
@with_report
def database(**given: Any) -> int:
    """Converts waiting rows of the log in a database.

    Example: eventlog convert database "$URL" --out waiting/ --mark
    """
    return _run("database", given)


@click.command(cls=ConversionCommand)
@log_argument
@log_option
@click.option("--until-empty", is_flag=True, help="End when nothing is left.")
@to_what
@on_spark
@with_report
def follow(**given: Any) -> int:
    """Converts the rows of a log as it grows, batch after batch, until a signal (Spark).

    Each row comes once, with any status. No row is marked.

    Example: eventlog convert follow "$URL" --out batches/
    """
    return _run("follow", given)


@click.command(cls=ConversionCommand)
@inputs_argument
@click.option("--tables", multiple=True, metavar="LABEL=TABLE,…", help="The tables of labels: 111=shop.t1.")
@click.option("--key", "keys", multiple=True, metavar="TABLE=COL,…", help="A table's key.")
@schema_option
@code_page_option
@click.option("--dirty", is_flag=True, help="Each line of a .hex file is a whole buffer.")
@to_what
@overwrite_option
@engine_option
@with_report
def gbase(**given: Any) -> int:
    """Converts captured streams of GBase 8s or Informix.

    Example: eventlog convert gbase capture.bin --tables 111=shop.t1 --key shop.t1=id --out stream/
    """
    return _run("gbase", given)


@click.command(cls=ConversionCommand)
@inputs_argument
@click.option(
    "--schema",
    metavar="FILE",
    type=click.Path(path_type=Path),
    required=True,
    help="Tables, types and keys as JSON: the queue has only numbers of tables.",
)
@code_page_option
@to_what
@overwrite_option
@engine_option
@on_spark
@with_report
def linter(**given: Any) -> int:
    """Converts exports of LINTER's queue.

    INPUT is JSON lines, CSV or Parquet.

    Example: eventlog convert linter queue.jsonl --schema schema.json --out documents/
    """
    return _run("linter", given)


def _run(command: str, given: dict[str, Any]) -> int:
    require("A conversion", "pyarrow")
    from eventlog.convert.orders import order_of
    from eventlog.convert.run import run

    return run(order_of(command, given))
