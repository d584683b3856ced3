"""`eventlog rules`: the tables that the rules read, as text."""

from __future__ import annotations

import click

from eventlog.cli.show import show_json, show_table
from eventlog.cli.site import json_option
from eventlog.core.model import Kind, Op
from eventlog.core.rules.meaning import EXPLANATION, MEANING, PRECEDENCE, STATUS, Meaning

KINDS = {kind: kind.name.lower().replace("_", " ") for kind in Kind}


@click.command()
@json_option
def rules(as_json: bool) -> None:
    """Prints the rules: event types, precedence, and the outcomes of rows.

    Example: eventlog rules
    """
    meanings = [(kind, MEANING[kind]) for kind in Kind]
    if as_json:
        kinds = [{"type": int(kind), "name": KINDS[kind], **_meaning(meaning)} for kind, meaning in meanings]
        precedence = [{"rule": rule, "says": says} for rule, says in PRECEDENCE]
        outcomes = [{"reason": reason, "status": STATUS[reason], "because": EXPLANATION[reason]} for reason in STATUS]
        show_json({"event_types": kinds, "precedence": precedence, "outcomes": outcomes})
        return
    click.echo("Event types")
    show_table(
        ("type", "name", "category", "element", "attributes"),
        [
            (int(kind), KINDS[kind], category_name(meaning), f"<{meaning.op}>", _attributes(meaning))
            for kind, meaning in meanings
        ],
        empty="",
    )
    click.echo("Within one life of an object, in this order")
    show_table(("rule", "says"), PRECEDENCE, empty="")
    click.echo("What becomes of a row")
    rows = [(reason, STATUS[reason], EXPLANATION[reason]) for reason in STATUS]
    show_table(("reason", "status", "because"), rows, empty="")


def category_name(meaning: Meaning) -> str:
    """Name an event type's category, as the product's documents do."""
    speaks_of = "per-field"
    if meaning.row:
        speaks_of = "per-row"
    brings = "non-query-back"
    if meaning.back:
        brings = "query-back"
    return f"{speaks_of} {brings}"


def _meaning(meaning: Meaning) -> dict[str, object]:
    return {
        "category": category_name(meaning),
        "element": meaning.op,
        "reads_back": meaning.back,
        "reset": meaning.reset,
    }


def _attributes(meaning: Meaning) -> str:
    if meaning.op is Op.DELETE:
        return "none"
    values = "current value" if meaning.back else "new value"
    if meaning.op is Op.ADD:
        return f"{values} of the logged column"
    which = "every column" if meaning.row else "the logged column"
    removed = "remove all values" if meaning.reset else "remove old value"
    return f"{which}: {removed}, add {values}"
