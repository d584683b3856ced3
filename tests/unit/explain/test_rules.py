"""`eventlog rules`: what it calls the categories of event types."""

from __future__ import annotations

from eventlog.core.model import Kind
from eventlog.core.rules import MEANING
from eventlog.explain.rules_command import category_name


def test_every_event_type_has_the_name_of_its_category() -> None:
    assert [category_name(MEANING[kind]) for kind in Kind] == [
        *["per-field non-query-back"] * 3,
        "per-row non-query-back",
        *["per-row query-back"] * 2,
        *["per-field query-back"] * 2,
    ]
