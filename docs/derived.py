"""Reference pages that are derived from the code: errors, metrics, and the grammars as pictures."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Final

from docs.grammars import TABLE_KEY, definitions
from eventlog.capture.installed import TriggerCondition
from eventlog.core import errors
from eventlog.core.errors import EventlogError
from eventlog.core.model import Status
from eventlog.core.proofs import LastProof
from eventlog.daemon.health import OutputFigures, Standby, VitalsReading
from eventlog.delivery.output import OutputState
from eventlog.sources.log.flow import Flow, OutputLag
from eventlog.web.metrics import metrics

CODES: Final = {
    0: ("OK", "it is done"),
    1: ("", "`eventlog verify` found a difference"),
    64: ("EX_USAGE", "the command was called wrongly"),
    65: (
        "EX_DATA",
        'data could not be read; a row ended as E, with `on_error = "halt"` or `--strict`; or all rows of a conversion did',
    ),
    69: ("EX_UNAVAILABLE", "something is not available, and waiting does not help; or a receiver answered `fatal`"),
    70: ("EX_SOFTWARE", "a fault of eventlog; `--debug` shows where"),
    75: ("EX_TEMPFAIL", "something failed that may pass, or another publisher works on the log: try again"),
    78: ("EX_CONFIG", "the configuration, the log or the installation cannot be used"),
    130: ("", "interrupted from the keyboard (Ctrl-C)"),
    141: ("", "nobody read the output any more, as in `eventlog log | head`"),
    143: ("", "ended by a second SIGTERM"),
}
"""What a command ends with; names are those of sysexits.h."""

MASKS: Final = """\
An update in a [change table](../how-to/change-tables.md) says in a mask which columns changed: a bit for each column by its place, header columns counted. Here `fname`
and `age` changed.
"""


def errors_page() -> str:
    """Every class of error, whose fault it is, and what a command ends with."""
    lines = [
        "# Errors\n",
        "An error is one or two sentences on standard error: what, where, what to do. A traceback comes only with `--debug`.\n",
        "| exit code | | means |",
        "| ---: | --- | --- |",
        *(f"| {code} | {f'`{name}`' if name else ''} | {meaning} |" for code, (name, meaning) in CODES.items()),
        "\n## Classes\n",
        "`eventlog.plugins` has those that a plug-in raises. An indented class is a special case of the one above it.\n",
        "| class | exit code | says |",
        "| --- | ---: | --- |",
        *_classes(EventlogError, 0),
        "\nWith `may_pass` the exit code is 75, else 69. The publisher tries again by itself, later each time.",
        "All have `message` and `hint`.\n",
    ]
    return "\n".join(lines)


def metrics_page() -> str:
    """Every metric with its type, labels and meaning, as the program would write them."""
    known = VitalsReading(
        rows=dict.fromkeys(Status, 0),
        last_cycle=0.0,
        last_document=0.0,
        flow=Flow(lags={"NAME": OutputLag()}),
        standby=Standby(),
        triggers=dict.fromkeys(TriggerCondition, 0),
        failing_triggers=0,
        outputs={"NAME": OutputState(at=0.0)},
        figures={"NAME": OutputFigures()},
        tables={"NAME": 0},
        proofs=(LastProof(output="NAME", table="NAME", at=0.0),),
    )
    text = metrics(known, refused_logins=0).decode()
    lines = [
        "# Metrics\n",
        "`/metrics` of `eventlog run --http` answers in the text format of Prometheus. A figure that nobody knows yet is left out.\n",
        "| metric | type | labels | |",
        "| --- | --- | --- | --- |",
        *_metrics(text),
        (
            "\nA histogram has `_bucket` with the label `le`, `_sum` and `_count`. On Linux the figures of the process"
            " are there too: `process_cpu_seconds_total`, `process_resident_memory_bytes` and others."
        ),
        "\n[Which of them to watch](../how-to/service.md#health-readiness-metrics).\n",
    ]
    return "\n".join(lines)


def grammars_page() -> str:
    """The pictures of the grammars, in order."""
    lines = [
        "# Grammars and masks, drawn",
        "\nWhat can be read along the rails is valid. Boxes with corners are other diagrams.\n",
        "## table_key\n",
        "[More about it](table-key.md).\n",
    ]
    for name in TABLE_KEY:
        lines += [f"### {name}\n", f"![{name}](grammar/{name}.svg)\n"]
    lines += ["## Masks\n", MASKS, "![a mask](grammar/mask.svg)\n"]
    lines += ["## XDS\n", "As `eventlog validate` has it: `eventlog/xds/xds.rng`. Attributes may come in any order.\n"]
    for name in definitions():
        lines += [f"![{name}](grammar/xds-{name}.svg)\n"]
    return "\n".join(lines)


def _classes(kind: type[EventlogError], depth: int) -> Iterator[str]:
    said = " ".join((inspect.getdoc(kind) or "").split()).replace("|", "\\|")
    code = "75, 69" if issubclass(kind, errors.MachineError) else kind.exit_code
    yield f"| {'&emsp;' * depth}`{kind.__name__}` | {code} | {said} |"
    for inner in kind.__subclasses__():
        if inner.__module__ == errors.__name__:
            yield from _classes(inner, depth + 1)


def _any_value(label: str) -> str:
    """A label, without its value where that is any."""
    return re.sub(r"(version|python|\w+(?==\"NAME))=\"[^\"]*\"", r"\1", label)


def _metrics(text: str) -> Iterator[str]:
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    for name, meaning in re.findall(r"^# HELP (eventlog_\S+) (.+)$", text, re.MULTILINE):
        labels = dict.fromkeys(re.findall(rf"^{name}(?:_count)?{{(.*)}} ", text, re.MULTILINE))
        shown = ", ".join(dict.fromkeys(f"`{_any_value(one)}`" for label in labels for one in label.split(",")))
        yield f"| `{name}` | {kinds[name]} | {shown} | {meaning} |"
