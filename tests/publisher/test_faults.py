"""The list of faults speaks of the code as it is: who moves code moves its faults."""

from __future__ import annotations

import pytest

from tests.publisher.fault import JournalFault
from tests.publisher.faults import FAULTS, is_current


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.what)
def test_a_fault_stands_once_where_it_is_said_to(fault: JournalFault) -> None:
    assert is_current(fault)
