"""What Spark tells a stream about the size of a batch; Spark before 4.2 has no such words, and tells nothing."""

from __future__ import annotations

__all__ = ["ReadAllAvailable", "ReadLimit", "ReadMaxRows", "SupportsTriggerAvailableNow"]

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    from dataclasses import dataclass

    class ReadLimit:  # type: ignore[no-redef]  # of Spark 4.2
        """How much a batch may have."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]  # the same
        """Everything that is there."""

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]  # the same
        """No more rows than these."""

        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]  # the same
        """Nothing: such a Spark has one batch for `availableNow`."""
