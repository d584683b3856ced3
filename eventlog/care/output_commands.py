"""`eventlog outputs`: the outputs one by one, and what may be done with one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click
from msgspec.structs import asdict

from eventlog.care.ages import utc_json
from eventlog.care.row_commands import somebody
from eventlog.cli.asking import agree, asking_options
from eventlog.cli.lazy import LazyGroup
from eventlog.cli.show import show_done, show_json, show_sentence, show_table
from eventlog.cli.site import Site, complete_outputs, json_option, site_options
from eventlog.core.errors import UsageError
from eventlog.core.plural import count_words

if TYPE_CHECKING:
    from eventlog.care.outputs import OutputProgress

why_option = click.option("--why", metavar="TEXT", default="", help="A reason, stored with user and time.")


PLACES: Final = {
    "list": f"{__name__}:list_outputs",
    **dict.fromkeys(("pause", "resume", "skip", "forget"), __name__),
}


@click.group(cls=LazyGroup, places=PLACES, invoke_without_command=True)
@json_option
@site_options
@click.pass_context
def outputs(context: click.Context, site: Site, as_json: bool) -> None:
    """Shows how far each output is; pauses, resumes or skips.

    An output that fails lags behind the others. Rows wait in the log until every output has them.

    Example: eventlog outputs
    """
    verb = context.invoked_subcommand
    if verb is None:
        _show_outputs(site, as_json=as_json)
        return
    # What stands before the verb is the verb's, as if it stood behind it.
    line = click.core.ParameterSource.COMMANDLINE
    given = {name: value for name, value in context.params.items() if context.get_parameter_source(name) is line}
    context.default_map = {verb: given}


@click.command("list")
@json_option
@site_options
def list_outputs(site: Site, as_json: bool) -> None:
    """Lists the outputs: state, rows behind, last document and last error.

    Example: eventlog outputs list --config eventlog.toml
    """
    _show_outputs(site, as_json=as_json)


def _show_outputs(site: Site, *, as_json: bool) -> None:
    from eventlog.care.outputs import list_outputs
    from eventlog.publisher.tables import BY_PUBLISHER

    listed = list_outputs(site.log(), site.config.publisher, name_configured_outputs(site))
    if as_json:
        show_json(
            [
                {
                    **asdict(output),
                    "at": utc_json(output.at),
                    "failed_at": utc_json(output.failed_at),
                }
                for output in listed
            ]
        )
        return
    behind = ("rows behind", "seconds behind")
    columns = ("output", "state", *behind, "last row", "last document", "taken at")
    show_table(columns, map(_row, listed), empty="The configuration has no output.")
    for output in listed:
        forget = f"`eventlog outputs forget {output.name!r}`"
        if output.error is not None and not output.recovered:
            show_sentence(f"{output.name} did not take everything at {output.failed_at} UTC: {output.error}")
        if output.paused is not None and f" {BY_PUBLISHER}: " in output.paused:
            show_sentence(f"{output.name} is paused {output.paused.rstrip('.')}.")
        if output.warning is not None:
            show_sentence(f"{output.name}: {output.warning}")
        for reason, number in output.unread.items():
            waiting = count_words(number, "row waits", "rows wait")
            show_sentence(
                f"{output.name}: {waiting} until the table can be read ({reason}); `eventlog status` names it."
            )
        if output.state == "unknown":
            problem = f"The configuration has no output {output.name}, and nobody can publish without it."
            pause = f"`eventlog outputs pause {output.name!r}`"
            show_sentence(f"{problem} Add it again, or say {pause} or {forget}.")
        if output.state == "conversion":
            rows = count_words(output.rows, "row")
            problem = f"{output.name} has {rows} to mark, and no new rows are published until then."
            show_sentence(f"{problem} If it was interrupted, give its command once more, or say {forget}.")


@click.command()
@click.argument("name", shell_complete=complete_outputs)
@why_option
@json_option
@site_options
def pause(site: Site, name: str, why: str, as_json: bool) -> None:
    """Pauses an output. The others continue, and its rows wait.

    Example: eventlog outputs pause hr-feed --why "their database moves" --config eventlog.toml
    """
    from eventlog.care.outputs import pause as stop

    is_new = stop(site.log(), name, name_configured_outputs(site), by=somebody(), why=why)
    if is_new:
        show_done("paused", name, f"{name} is paused.", as_json=as_json)
    else:
        show_done("paused", None, f"{name} was paused already.", as_json=as_json)


@click.command()
@click.argument("name", shell_complete=complete_outputs)
@json_option
@site_options
def resume(site: Site, name: str, as_json: bool) -> None:
    """Resumes an output that was paused, or whose rows wait as `restored`. It first gets the rows that waited.

    Example: eventlog outputs resume hr-feed --config eventlog.toml
    """
    from eventlog.care.outputs import resume as go_on

    is_new = go_on(site.log(), site.config.publisher, name, name_configured_outputs(site))
    if is_new:
        show_done("resumed", name, f"{name} is resumed.", as_json=as_json)
    else:
        show_done("resumed", None, f"{name} was not paused.", as_json=as_json)


@click.command()
@click.argument("name", shell_complete=complete_outputs)
@click.argument("ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every row that waits for it.")
@why_option
@asking_options
@json_option
@site_options
def skip(
    site: Site,
    name: str,
    ids: tuple[str, ...],
    every: bool,
    why: str,
    dry: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Gives up rows that wait for a lagging output: it never gets them. They end as W with a note.

    Example: eventlog outputs skip hr-feed 118 120-125 --why "they have them" --config eventlog.toml
    """
    from eventlog.care.outputs import find_kept_for
    from eventlog.care.outputs import skip as give_up
    from eventlog.care.rows import read_runs_of_ids
    from eventlog.sources.marks import RowRanges

    # Neither of them, or both.
    if bool(ids) is every:
        raise UsageError("Say which rows are given up: their numbers, or --all.")
    numbers = None if every else RowRanges(read_runs_of_ids(ids))
    log = site.log()
    kept = find_kept_for(log, name)
    if numbers is not None:
        kept &= numbers
    would = f"{count_words(len(kept), 'row')} would never go to {name}."
    if dry:
        show_done("would_skip", len(kept), would, as_json=as_json)
        return
    agree([would] if kept else [], yes=yes)
    delete = site.config.publisher.delete_from_log
    count = give_up(log, name, numbers, by=somebody(), why=why, delete_from_log=delete)
    show_done("skipped", count, f"{count_words(count, 'row')} given up for {name}.", as_json=as_json)


@click.command()
@click.argument("name", shell_complete=complete_outputs)
@asking_options
@json_option
@site_options
def forget(site: Site, name: str, dry: bool, yes: bool, as_json: bool) -> None:
    """Gives up an output that is not configured any more, and its rows.

    Example: eventlog outputs forget old-feed --config eventlog.toml
    """
    from eventlog.care.outputs import find_kept_for, is_conversion
    from eventlog.care.outputs import forget as give_up

    log = site.log()
    kept, converts = len(find_kept_for(log, name)), is_conversion(log, name)
    if converts:
        # Its rows go back to the publisher: nobody can say whether its output was complete.
        would = f"would wait again, though {name} may have converted them"
    else:
        would = f"would never go to {name}, and nothing would be kept for it any more"
    sentence = f"{count_words(kept, 'row')} {would}."
    if dry:
        show_done("would_skip", kept, sentence, as_json=as_json)
        return
    agree([sentence], yes=yes)
    delete = site.config.publisher.delete_from_log
    count = give_up(log, name, name_configured_outputs(site), by=somebody(), delete_from_log=delete)
    sentence = f"{count_words(count, 'row')} given up. Nothing is kept for {name} any more."
    if converts:
        sentence = f"{count_words(count, 'row')} of {name} given back to the publisher."
    show_done("skipped", count, sentence, as_json=as_json)


def name_configured_outputs(site: Site) -> list[str]:
    """Name the outputs of the configuration."""
    from eventlog.config.build import name_of
    from eventlog.config.outputs import default_output

    return [name_of(output) for output in site.config.output or (default_output(),)]


SHOWN_STATES: Final = {"in step": "up to date"}
"""States that people read in other words than programs, which have relied on these."""


def _row(output: OutputProgress) -> Sequence[object]:
    seconds = "" if output.seconds is None else f"{output.seconds:.0f}"
    state = SHOWN_STATES.get(output.state, output.state)
    return (
        *(output.name, state, output.rows, seconds),
        *(output.position or "", output.document or "", output.at or ""),
    )
