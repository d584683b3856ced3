"""The list of faults speaks of the code as it is: each has one place, and changes what stands there."""

from __future__ import annotations

import ast

import pytest

from tests.publisher.fault import ROOT, JournalFault
from tests.publisher.faults import FAULTS


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_has_one_place_in_its_function(fault: JournalFault) -> None:
    changed, text = fault.change(), (ROOT / fault.path).read_text(encoding="utf-8")
    if fault.path.suffix == ".sql":
        assert changed != text
    else:
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))
