"""`eventlog convert`: any number of changes in one go, to files, a database or Kafka. A command for
each kind of input: files of a log, the log of a database, streams.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from eventlog.cli.lazy import LazyGroup
from eventlog.cli.site import complete_outputs, config_option, json_option
from eventlog.core.errors import UsageError
from eventlog.core.packages import require

PART_EVENTS: Final = 100_000
LINE_BYTES: Final = 64_000_000

Decorator = Callable[[Any], Any]

COMMANDS: Final = {name: f"{__name__}:{name}" for name in ("files", "database", "gbase", "linter")}


class Conversions(LazyGroup):
    """`eventlog convert INPUT` is `convert files INPUT`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] not in ([name] for name in (*COMMANDS, "-h", "--help", "--debug")):
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
                for other in (files, database, gbase, linter)
                if any(error.option_name in param.opts for param in other.params)
            ]
            if not others:
                raise
            names = " and ".join(others)
            this = f"`eventlog convert {self.name}`"
            raise UsageError(f"{error.option_name} is an option of {names}; this is {this}.") from None


def several(*decorators: Decorator) -> Decorator:
    """Options that more than one command has, in their order."""

    def decorate(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


to_what = several(
    click.option(
        "--to",
        "target",
        type=click.Choice(["xds", "change-tables", "messages"]),
        default="xds",
        show_default=True,
        help="What changes become.",
    ),
    click.option("--out", metavar="DEST", required=True, help="A folder, which is made; or an address: s3://…."),
    click.option("--overwrite", is_flag=True, help="Replace what an earlier conversion left in DEST."),
    click.option(
        "--format",
        "file_format",
        type=click.Choice(["parquet", "csv", "json", "avro"]),
        help="Of change tables: parquet, csv, json; of messages: json, avro. Default: the configuration's.",
    ),
    click.option("--metadata-topic", metavar="NAME", help="Also write metadata messages, into this topic."),
    click.option("--to-database", metavar="URL", help="Change tables into this database (local engine)."),
    click.option("--to-lake", metavar="NAME", help="Change tables into the lake of this output (local engine)."),
    click.option("--kafka", metavar="SERVERS", help="Messages into the topics of this Kafka."),
    click.option(
        "--part-events",
        type=click.IntRange(1),
        default=PART_EVENTS,
        show_default=True,
        metavar="N",
        help="Changes in a part file.",
    ),
    click.option(
        "--transactions",
        type=click.Choice(["mixed", "whole"]),
        help="whole: the changes of a transaction together. Default: the configuration's.",
    ),
)

of_the_log = several(
    click.option("--status", "statuses", metavar="LETTERS", help="Only rows with these statuses (of a database: N)."),
    click.option("--schema", metavar="FILE", type=click.Path(path_type=Path), help="Tables, types and keys as JSON."),
    click.option("--database", metavar="URL", help="The database that answers query-backs."),
    click.option("--snapshot", metavar="DIR", help="Files that answer query-backs."),
    click.option(
        "--line-limit",
        type=click.IntRange(1_000_000, 2_000_000_000),
        default=LINE_BYTES,
        show_default=True,
        metavar="BYTES",
        help="The longest line of JSON or record of CSV that is read; it takes several times as much memory.",
    ),
    click.option("--coalesce", is_flag=True, help="One change for each life of an object."),
)

by_engine = several(
    click.option(
        "--engine",
        type=click.Choice(["auto", "spark", "local"]),
        default="auto",
        show_default=True,
        help="auto: Spark for addresses, with --master or --conf, and for large inputs, if it is installed; else local.",
    ),
    click.option(
        "--jobs", type=click.IntRange(1), metavar="N", help="Processes of the local engine (default: all cores)."
    ),
    click.option("--master", metavar="URL", help="Spark's master (default: local[*])."),
    click.option("--conf", multiple=True, metavar="K=V", help="A setting of Spark; can be given several times."),
    click.option("--resume", is_flag=True, help="Continue an interrupted run (local engine)."),
    click.option(
        "--strict/--no-strict",
        default=None,
        help="Exit with 65 when there were bad rows, or never because of them (default: when all rows were bad).",
    ),
    click.option(
        "--output",
        metavar="NAME",
        shell_complete=complete_outputs,
        help="Use the policies and settings of this output.",
    ),
    click.option("--no-policies", is_flag=True, help="Publish without the policies of the configuration."),
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
@of_the_log
@by_engine
def files(**given: Any) -> int:
    """Converts rows of a log in files.

    INPUT is a file (Parquet, JSON lines, CSV), a folder, a pattern or an address.

    Example: eventlog convert files archive/ --schema schema.json --out documents/
    """
    return _carry_out("log", given)


@click.command(cls=ConversionCommand)
@click.argument("inputs", metavar="URL", callback=lambda _context, _argument, url: (url,))
@click.option("--log", metavar="NAME", help="The event log table.")
@click.option("--mark", is_flag=True, help="Write the status of the rows into the database; no publisher may work.")
@click.option(
    "--follow",
    is_flag=True,
    help="Continue as the log grows, batch after batch, until a signal (Spark).",
)
@click.option("--until-empty", is_flag=True, help="With --follow: end when nothing is left.")
@to_what
@of_the_log
@by_engine
def database(**given: Any) -> int:
    """Converts waiting rows of the log in a database.

    Example: eventlog convert database "$URL" --out waiting/ --mark
    """
    return _carry_out("log", {**given, "from_database": True})


@click.command(cls=ConversionCommand)
@inputs_argument
@click.option("--tables", multiple=True, metavar="LABEL=TABLE,…", help="The tables of labels: 111=shop.t1.")
@click.option("--key", "keys", multiple=True, metavar="TABLE=COL,…", help="A table's key.")
@click.option("--schema", metavar="FILE", type=click.Path(path_type=Path), help="Tables, types and keys as JSON.")
@code_page_option
@click.option("--dirty", is_flag=True, help="Each line of a .hex file is a whole buffer.")
@to_what
@by_engine
def gbase(**given: Any) -> int:
    """Converts captured streams of GBase 8s or Informix.

    Example: eventlog convert gbase capture.bin --tables 111=shop.t1 --key shop.t1=id --out stream/
    """
    return _carry_out("gbase", given)


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
@by_engine
def linter(**given: Any) -> int:
    """Converts exports of LINTER's queue.

    INPUT is JSON lines, CSV or Parquet.

    Example: eventlog convert linter queue.jsonl --schema schema.json --out documents/
    """
    return _carry_out("linter", given)


def _carry_out(source: str, given: dict[str, Any]) -> int:
    require("A conversion", "pyarrow")
    from eventlog.convert.carrying import carry_out
    from eventlog.convert.ordering import order_of

    return carry_out(order_of(source, given))
