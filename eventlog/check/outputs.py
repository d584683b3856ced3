"""Points about outputs: each is tried as far as one can try without leaving anything behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from eventlog.check.point import Point, failure, ok, unforeseen, warning
from eventlog.config.build import refuse_twins, require_packages
from eventlog.config.outputs import plugin_of
from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError
from eventlog.core.plugins import Finding


def output_points(config: Config) -> Iterator[Point]:
    """Yield a point for each output; nothing stays written and nothing is sent."""
    known = []
    for number, output in enumerate(config.output, 1):
        name = f"output {output.name or number}"
        try:
            require_packages(output)
            plugin = plugin_of(output)
            known.append(output)
            findings: Iterable[Finding] = [Finding(message=f"the sink {output.sink} has nothing to try")]
            if plugin.check is not None:
                findings = plugin.check(output)
            yield from finding_points(name, findings)
        except EventlogError as error:
            yield failure(name, error)
        except Exception as error:  # noqa: BLE001  # the other outputs are tried all the same
            yield failure(name, unforeseen(error))
    try:
        refuse_twins(known)
    except EventlogError as error:
        yield failure("outputs", error)


def finding_points(name: str, findings: Iterable[Finding]) -> Iterator[Point]:
    """Turn a plug-in's findings into points of this name."""
    for finding in findings:
        if finding.mend is None:
            yield ok(name, finding.message)
        else:
            yield warning(name, finding.message, finding.mend)
