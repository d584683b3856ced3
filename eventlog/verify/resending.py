"""A full load to a receiver whose objects can be read: `verify` and its repair find and send what differs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import create_engine

from eventlog.care.outputs import refuse_unserved
from eventlog.config.build import name_of
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config
from eventlog.policies.settings import steps_of
from eventlog.sql.log import Log
from eventlog.verify.opening import keeps_objects, target_of
from eventlog.verify.proof import Limits
from eventlog.verify.verifying import Verified, Verifier

MOST_ROWS: Final = 10_000
"""Where so many objects differ, a full load sends all of them, a piece at a time."""


def begin_comparison(
    log: Log, config: Config, tables: Sequence[str], schema: str | None = None, only: str = ""
) -> Resending | None:
    """Begin to compare with the one output that gets the rows, if its receiver can be."""
    output = find_compared_output(config, only)
    if output is None:
        return None
    compared = Resending(log, config, output, tables, schema)
    refuse_unserved(log, compared.output)
    return compared


def find_compared_output(config: Config, only: str) -> OutputConfig | None:
    """Return the output that rows go to alone, if its receiver can be compared."""
    outputs = [output for output in config.output if not only or name_of(output) == only]
    return outputs[0] if len(outputs) == 1 and keeps_objects(outputs[0]) else None


class Resending:
    """Sends what one output lacks of tables."""

    def __init__(
        self, log: Log, config: Config, output: OutputConfig, tables: Sequence[str], schema: str | None
    ) -> None:
        self.output = name_of(output)
        self.verifier = Verifier(
            log.engine,
            log,
            config,
            target_of(output, create_engine, log=log),
            output=self.output,
            steps=steps_of(output, config.policy),
            limits=Limits(wait=0, shown=0, most=MOST_ROWS),  # what is on its way is sent anyway
        )
        self._sources = {source.called: source for source in self.verifier.sources(tables, schema)}

    @staticmethod
    def sends_all(verified: Verified) -> bool:
        """Tell whether nobody knows all that differs, so that every row is to be sent."""
        return verified.proof.more or verified.proof.problem is not None

    def send(self, called: str) -> Verified:
        """Write rows for the objects of a table that differ; for none where very many do."""
        return self.verifier.verify(self._sources[called], mend=True, whole=True)
