"""Whose fault an unexpected error is."""

from __future__ import annotations

from importlib import import_module

import pytest

from eventlog.cli.mishaps import in_words
from eventlog.core.errors import without_promise
from tests.support.plugins import Site, site

__all__ = ["site"]


def test_an_error_in_the_code_of_a_plug_in_is_a_fault_of_its_package(site: Site) -> None:
    module = "import json\ndef fail():\n    json.loads('{')\n"
    site.install("clumsy-sink", {"sinks": {"clumsy": "clumsy_sink:CLUMSY"}}, module)
    with pytest.raises(ValueError) as raised:
        import_module("clumsy_sink").fail()
    said, code = in_words(raised.value)
    assert said.endswith("\nThis is a fault of the plug-in clumsy-sink; --debug shows where it happened.")
    assert code == 70


def test_any_other_is_a_fault_of_eventlog() -> None:
    with pytest.raises(TypeError) as raised:
        without_promise(None)  # type: ignore[arg-type]  # a fault put in
    assert in_words(raised.value)[0].endswith("\nThis is a fault of eventlog; --debug shows where it happened.")
