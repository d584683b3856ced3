"""A document that says that all is well, when there has been nothing else to say for some time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from eventlog.delivery.output import Output


class Heartbeat:
    """Beats at every output whose format can, after so many idle seconds; 0 is never. Any document counts as a beat."""

    def __init__(self, outputs: Sequence[Output], seconds: float) -> None:
        self._outputs = [output for output in outputs if output.format.heartbeat() is not None]
        self._seconds = seconds if self._outputs else 0.0
        self._last = monotonic()

    def put_off(self) -> None:
        """A document was published."""
        self._last = monotonic()

    def beat(self, confirm: Callable[[], None]) -> bool:
        """Beats if it is time; says whether it did. `confirm` fails when somebody else publishes by now."""
        if not self._seconds or monotonic() < self._last + self._seconds:
            return False
        confirm()
        for output in self._outputs:
            document = output.format.heartbeat()
            if document is not None:
                output.sink.write([document])
        self.put_off()
        return True
