"""What becomes of a value that a format cannot write is the same behind policies."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.seams import on_value_of
from eventlog.policies.bound import PolicyFormat
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.xds.write import XdsFormat

FORMS = [
    XdsFormat(on_value="refuse-object"),
    MessageFormat(settings=MessageSettings(on_value="refuse-object")),
    ChangeTableFormat(settings=ChangeTableSettings(on_value="refuse-object")),
]


@pytest.mark.parametrize("form", FORMS)
def test_a_policy_changes_nothing_of_it(form: Any) -> None:
    assert on_value_of(form) == on_value_of(PolicyFormat(form, ())) == "refuse-object"
    assert on_value_of(object()) is None  # type: ignore[arg-type]  # a format that knows nothing of it
