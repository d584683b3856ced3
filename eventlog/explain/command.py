"""`eventlog explain`: what became of a row, or would become of it, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from eventlog.cli.show import readable, show_json, show_sentence, show_table, show_text
from eventlog.cli.site import Site, json_option, site_options
from eventlog.core.model import LARGEST_NUMBER, Status
from eventlog.core.plural import count_words
from eventlog.explain.policy_command import show_result

if TYPE_CHECKING:
    from eventlog.explain.rows import Explanation


@click.command()
@click.argument("record_id", type=click.IntRange(-LARGEST_NUMBER, LARGEST_NUMBER, max_open=True))
@click.option(
    "--values",
    is_flag=True,
    help="Show also the values that policies hide from every output.",
)
@json_option
@site_options
def explain(site: Site, record_id: int, values: bool, as_json: bool) -> None:
    """Explains a row: what the rules decide about it and why, and its document.

    Example: eventlog explain 1742
    """
    from eventlog.explain.rows import explain as explained
    from eventlog.explain.states import failing_sentences
    from eventlog.sql.log import Log

    engine, names = site.where_logged()
    explanation = explained(engine, names, site.log_config, record_id, values=values)
    if as_json:
        show_json(explanation)
        return
    failing: list[str] = []
    if explanation.status == Status.NEW:
        log = Log(engine, names)
        with log.moment() as connection:
            failing = [*failing_sentences(connection, log, record_id)]
    _show(explanation, failing)


def _show(explanation: Explanation, failing: Sequence[str]) -> None:
    row = f"Row {explanation.record_id}: status {explanation.status}."
    show_sentence(" ".join([row, explanation.recorded, *failing]))
    for answer in explanation.answers:
        show_sentence(answer.sentence)
    if explanation.by.context:
        show_sentence(
            f"Made by {readable(explanation.by.user or 'somebody')}; the session says {readable(explanation.by.context)}."
        )
    others = len(explanation.rows) - 1
    beside = f"with {count_words(others, 'other row')} of the same object" if others > 0 else "alone"
    show_sentence(f"Read {beside}; today the rules say:")
    table = []
    for read in explanation.rows:
        what = (read.record_id, read.event_type, read.column, read.old, read.new)
        table.append((*what, read.status, read.reason, read.note))
    columns = ("row", "type", "column", "old", "new", "status", "reason", "note")
    show_table(columns, table, empty="")
    if explanation.document:
        show_text(explanation.document)
    elif not explanation.refused:
        show_sentence("It makes no document.")
    for sentence in explanation.refused:
        show_sentence(sentence)
    for result in explanation.policies:
        show_result(result)
    for sent in explanation.sent:
        show_sentence(f"{sent.output} is sent:" if sent.text else f"{sent.output}: {sent.note}")
        if sent.text:
            show_text(sent.text)
