"""`eventlog verify`: compares a source with what an output holds, names what differs, and publishes
it again.
"""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from eventlog.cli.show import say, show_json
from eventlog.cli.site import (
    MOST_JOBS,
    Site,
    complete_outputs,
    complete_tables,
    json_option,
    number_option,
    site_options,
)
from eventlog.cli.watching import watching
from eventlog.core.errors import OK, ConfigError, UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.config.outputs import OutputConfig
    from eventlog.sql.log import Log
    from eventlog.verify.targets import Target

_DIFFERS: Final = 1
"""The exit code where source and output differ."""


@click.command()
@click.argument("tables", nargs=-1, metavar="[TABLE]...", shell_complete=complete_tables)
@click.option(
    "--output",
    "name",
    metavar="NAME",
    shell_complete=complete_outputs,
    help="The output to compare with.",
)
@click.option("--against", "url", metavar="URL", help="Compare with the tables of this database instead.")
@click.option("--mirrors", is_flag=True, help="Compare with the mirrors of `eventlog apply`.")
@click.option("--into", metavar="SCHEMA", help="The schema of the mirrors, or of the tables of --against.")
@click.option("--suffix", metavar="TEXT", help="The ending of their names (mirrors: __mirror).")
@click.option(
    "--associations",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with a vault's associations, one in each line.",
)
@click.option("--repair", is_flag=True, help="Publish what differs again, through the log.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 86_400),
    default=10,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for rows on their way.",
)
@number_option("--rows-per-second", "Read no faster (default: no limit).")
@click.option("--between", metavar="HH:MM-HH:MM", help="Read only at this time of day.")
@number_option("--jobs", "Tables at the same time.", most=MOST_JOBS, default=1)
@number_option("--shown", "Differences to name.", least=0, default=100)
@number_option("--most", "Stop a table at this many differences.", default=10_000)
@click.option(
    "--report",
    "reports",
    type=click.Path(path_type=Path, dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Write a report: .html, .json or .txt.",
)
@click.option(
    "--metrics",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write metrics for Prometheus.",
)
@json_option
@site_options
def verify(site: Site, tables: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Compares tables with what an output holds of them, and names what differs.

    Databases hash ranges of rows; only rows that differ are read. Rows on their way do not count.
    The exit code is 1 when something differs.

    Example: eventlog verify usr grp --output lake --mirrors --repair
    """
    from eventlog.care.outputs import refuse_unserved
    from eventlog.compare.pace import Pace, read_window
    from eventlog.config.build import name_of
    from eventlog.durable_files import write_file
    from eventlog.policies.settings import steps_of
    from eventlog.verify.proof import Limits
    from eventlog.verify.report import FORMS, VerifyReport, as_metrics, lines
    from eventlog.verify.verifying import Verifier

    # Before hours of comparing, what would fail behind them.
    for file in given["reports"]:
        if file.suffix not in FORMS:
            endings = ", ".join(FORMS)
            message = f"The report {file.name} cannot be written"
            raise UsageError(f"{message}; use a file that ends in {endings}.")
    engine, log = _source(site, mend=given["repair"])
    output = _output(site, given["name"], needed=given["url"] is None)
    target = _target(site, output, given, log)
    named = "" if output is None else name_of(output)
    if given["repair"] and named and log is not None:
        refuse_unserved(log, named)
    window = None if given["between"] is None else read_window(given["between"])
    verifier = Verifier(
        engine,
        log,
        site.config,
        target,
        output=named,
        steps=() if output is None else steps_of(output, site.config.policy),
        pace=Pace(given["rows_per_second"] or 0, window),
        limits=Limits(wait=given["wait"], shown=given["shown"], most=given["most"]),
    )
    sources = verifier.sources(tables, site.schema)
    with watching() as watch:
        watch.begin("verify", None, verifier)
        verified = tuple(verifier.verify_all(sources, mend=given["repair"], jobs=given["jobs"]))
    at = dt.datetime.now(dt.UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
    report = VerifyReport(at=at, output=named or given["url"] or "", tables=verified)
    for file in given["reports"]:
        write_file(file, FORMS[file.suffix](report))
    if given["metrics"] is not None:
        write_file(given["metrics"], as_metrics(report, time.time()))
    if as_json:
        show_json(report.plain)
    else:
        for line in lines(report):
            say(line)
    if not report.equal:
        return _DIFFERS
    return OK


def _source(site: Site, *, mend: bool) -> tuple[Engine, Log | None]:
    """Open the database, and its log where the source has one."""
    kind = site.config.source.kind
    if kind not in ("log", "compare"):
        message = f"The source is {kind}, whose tables cannot be read."
        hint = "verify needs a database with the tables: source.kind log or compare."
        raise ConfigError(message, hint=hint)
    if kind == "compare":
        if mend:
            problem = "--repair writes into an event log, and a source of the kind compare has none."
            hint = 'Delete its state and start once with on_lost = "resync".'
            raise UsageError(problem, hint=hint)
        return site.engine(), None
    log = site.log_of_triggers()
    return log.engine, log


def _output(site: Site, name: str | None, *, needed: bool) -> OutputConfig | None:
    """Find the named output, or the only one there is."""
    from eventlog.care.output_commands import name_configured_outputs
    from eventlog.care.outputs import refuse_unknown
    from eventlog.config.build import name_of

    outputs = site.config.output
    if name is not None:
        refuse_unknown(name, name_configured_outputs(site))
        return next(output for output in outputs if name_of(output) == name)
    if len(outputs) == 1:
        return outputs[0]
    if needed:
        known = ", ".join(map(name_of, outputs)) or "none"
        what = "Say with --output which output is compared"
        raise UsageError(f"{what}; the configuration has {known}.")
    return None


def _target(site: Site, output: OutputConfig | None, given: dict[str, Any], log: Log | None) -> Target:
    """Make the side to compare with."""
    from eventlog.verify.opening import target_of
    from eventlog.verify.targets import AssociationTarget

    if given["associations"] is not None:
        return AssociationTarget(given["associations"], site.config.source.schema)
    if given["url"] is not None:
        return _tables(given["url"], given["into"], given["suffix"] or "")
    # `_output` has refused that where no URL is given.
    assert output is not None
    return target_of(
        output,
        _open_engine,
        mirrors=given["mirrors"],
        into=given["into"],
        suffix=given["suffix"],
        log=log,
    )


def _tables(url: str, schema: str | None, suffix: str) -> Target:
    """Open the tables of a database; of an unknown kind every row is read."""
    from sqlalchemy import create_engine

    from eventlog.sql.connect import read_url
    from eventlog.sql.dialect import dialect_of
    from eventlog.verify.targets import StreamedTarget, TableTarget

    parsed = read_url(url)
    try:
        dialect_of(parsed)
    except ConfigError:
        engine = create_engine(url)
    else:
        return TableTarget(_open_engine(url), schema, suffix)
    click.get_current_context().call_on_close(engine.dispose)
    return StreamedTarget(engine, schema, suffix)


def _open_engine(url: str) -> Engine:
    """Connect to a database until the command ends."""
    from eventlog.sql.connect import connect

    engine = connect(url)
    click.get_current_context().call_on_close(engine.dispose)
    return engine
