"""Draws pages: templates with the words and filters that they have, and who looks."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.core.model import Kind, Status, format_position
from eventlog.core.plural import count_words, duration
from eventlog.core.rules.meaning import EXPLANATION, PRECEDENCE
from eventlog.core.rules.screen import HIDDEN
from eventlog.version import VERSION
from eventlog.web.actions import (
    ACTIONS,
    DONE,
    GIVES_REASON,
    OUTPUT_ACTION_NAMES,
    OUTPUT_ACTIONS,
    TABLE_ACTIONS,
    WHY_CHARACTERS,
)
from eventlog.web.addresses import address, list_address, table_address
from eventlog.web.banners import CAUSE_CHARACTERS
from eventlog.web.cell_labels import with_columns
from eventlog.web.life_line import BUTTONS
from eventlog.web.navigation import NO_STATE, PageState
from eventlog.web.reading import RANGES
from eventlog.web.texts import ident, link_sentence, make_visible, moment, short, value, value_if
from eventlog.web.words import output_state, status_word, trigger_state, word_of

if TYPE_CHECKING:
    from jinja2 import Environment

KIND_NAMES: Final = {str(kind.value): kind.name.lower().replace("_", " ") for kind in Kind}

RELOAD_SECONDS: Final = 10
"""After which a page without JavaScript is loaded again."""

SHOWN_CHARACTERS: Final = 20_000
"""Of a value or a document that a page holds."""

SHOWN_NUMBERS: Final = 20
"""Of the rows that a question is about."""

SHOWN_ROWS: Final = 200
"""Of the rows of an object on a document's page."""


class Viewer(Struct, frozen=True, kw_only=True):
    """What a page must know of who looks: the log and its state, their name, whether they may act, and
    the style.
    """

    log: str
    visitor: str
    acts: bool
    style: str
    script: str
    rows_script: str = ""
    leaves: bool = False
    proof: str = ""
    state: PageState = NO_STATE


def kind_name(event_type: str | int | None) -> str:
    """Name an event type beside its number."""
    if event_type is None:
        return "NULL"
    return f"{event_type} {KIND_NAMES.get(str(event_type), 'unknown')}"


def draw_page(template: str, title: str, look: Viewer, *, here: str = "", **facts: Any) -> str:
    """Draw a whole page."""
    return environment().get_template(template).render(facts, title=title, look=look, here=here)


def draw_part(template: str, facts: dict[str, Any]) -> str:
    """Draw a part of a page that changes while one looks."""
    return environment().get_template(template).render(facts)


@cache
def environment() -> Environment:
    """Return how templates are read: what is escaped, and the words that they have."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("eventlog.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=make_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "counted": count_words,
        "duration": duration,
        "grouped": "{:,}".format,
        "ident": ident,
        "linked": link_sentence,
        "moment": moment,
        "kind_name": kind_name,
        "status_word": status_word,
        "percent": lambda part: round(100 * min(max(part, 0.0), 1.0), 2),
        "position": format_position,
        "short": short,
        "trigger_state": trigger_state,
        "value": value,
        "value_if": value_if,
        "with_columns": with_columns,
        "word": word_of,
    }
    made.globals |= {
        "action_texts": BUTTONS,
        "address": address,
        "cause_characters": CAUSE_CHARACTERS,
        "output_state": output_state,
        "hidden_value": HIDDEN,
        "statuses": frozenset(status.value for status in Status),
        "listed": list_address,
        "done_with_rows": DONE,
        "gives_reason": GIVES_REASON,
        "meanings_of_actions": ACTIONS,
        "meanings_of_output_actions": OUTPUT_ACTIONS,
        "names_of_output_actions": OUTPUT_ACTION_NAMES,
        "meanings_of_table_actions": TABLE_ACTIONS,
        "meanings_of_reasons": {reason.value: meaning for reason, meaning in EXPLANATION.items()},
        "pages": (
            ("Overview", address()),
            ("Rows", address("rows")),
            ("Errors", address("rows", status="EF")),
            ("Tables", address("tables")),
        ),
        "precedence": PRECEDENCE,
        "ranges": RANGES,
        "reload_seconds": RELOAD_SECONDS,
        "shown_characters": SHOWN_CHARACTERS,
        "shown_numbers": SHOWN_NUMBERS,
        "shown_rows": SHOWN_ROWS,
        "table_address": table_address,
        "version": VERSION,
        "why_characters": WHY_CHARACTERS,
    }
    return made
