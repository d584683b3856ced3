"""Reports of proofs: text for people, JSON for programs, HTML for auditors, and metrics for a
monitoring system.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from eventlog.core.plural import count_words
from eventlog.core.secrets import make_readable
from eventlog.verify.proof import NamedDifference, TableProof, last_proof
from eventlog.verify.verifying import Verified

KINDS: Final = {
    "missing": "is missing in the output",
    "extra": "is in the output and not in the source",
    "double": "is in the output more than once",
    "value": "has other values in the output",
}

HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>eventlog verify</title>
<style>
body { font: 15px/1.4 sans-serif; margin: 2em; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 } th, td { border: 1px solid #bbb; padding: .3em .6em; text-align: left }
td.n { text-align: right } .equal { color: #060 } .differs { color: #a00 }
</style></head><body>
"""


class VerifyReport(Struct, frozen=True, kw_only=True):
    """What was verified: when (UTC), which output, and each table."""

    at: str
    output: str
    tables: tuple[Verified, ...]

    @property
    def equal(self) -> bool:
        return all(verified.proof.equal for verified in self.tables)

    @property
    def plain(self) -> dict[str, Any]:
        """Convert the report for JSON."""
        tables = []
        for verified in self.tables:
            proof, repaired = verified.proof, verified.repaired
            tables.append({**asdict(proof), "equal": proof.equal, "repaired": repaired})
        return {"at": self.at, "output": self.output, "equal": self.equal, "tables": tables}


def summary(verified: Verified) -> str:
    """Sum up one table in a sentence."""
    proof = verified.proof
    if proof.problem is not None:
        return f"{proof.table}: not compared. {proof.problem}"
    if not proof.compared:
        return f"{proof.table}: not compared."
    rows = f"{count_words(proof.rows, 'row')} in {proof.seconds:.1f} s"
    if proof.waiting:
        rows += f"; {proof.waiting} on their way"
    if proof.equal:
        return f"{proof.table}: equal, {rows}."
    kinds = ", ".join(f"{count} {kind}" for kind in KINDS if (count := getattr(proof, kind)))
    objects = count_words(proof.differing, "object differs", "objects differ")
    # The comparison was ended at so many.
    if proof.more:
        objects = f"at least {objects}"
    sentence = f"{proof.table}: {objects} ({kinds}), {rows}."
    if verified.repaired:
        sentence += f" {count_words(verified.repaired, 'object')} will be published again."
    return sentence


def sentence(difference: NamedDifference) -> str:
    """Write one difference in a line, with the log's reason for it."""
    values = []
    for value in difference.values:
        source, target = _quote(value.source), _quote(value.target)
        values.append(f"{value.column} is {source} in the source and {target} in the output")
    what = "; ".join(values) or KINDS[difference.kind]
    return f"{difference.key} {what}. {why(difference)}"


def why(difference: NamedDifference) -> str:
    """Explain the object's difference from the log."""
    if difference.record_id is None:
        return "The log has no row about it."
    reason = difference.reason
    # A row that simply was published has no reason in the log.
    if not reason and difference.status == "S":
        reason = "published"
    outcome = " ".join(filter(None, (difference.status, reason)))
    if difference.note:
        outcome += f": {difference.note.rstrip('.')}"
    return f"Last row {difference.record_id}: {outcome}."


def lines(report: VerifyReport) -> Iterator[str]:
    """Write the report as text."""
    for verified in report.tables:
        proof = verified.proof
        yield make_readable(summary(verified))
        yield from (f"  {make_readable(sentence(difference))}" for difference in proof.differences)
        hidden = proof.differing - len(proof.differences)
        if hidden > 0:
            yield f"  and {hidden} more"
        yield from (f"  {make_readable(note)}" for note in proof.notes)


def as_text(report: VerifyReport) -> bytes:
    head = f"eventlog verify, {report.at}, {report.output or 'no output'}"
    return "\n".join([head, *lines(report), ""]).encode()


def as_json(report: VerifyReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report.plain), indent=2) + b"\n"


def as_html(report: VerifyReport) -> bytes:
    """Write a self-contained page."""
    heading = "<h1 class='differs'>Source and output differ.</h1>"
    if report.equal:
        heading = "<h1 class='equal'>Source and output are equal.</h1>"
    parts = [
        HEAD,
        f"{heading}<p>{escape(report.at)} UTC, {escape(report.output)}</p>",
    ]
    columns = (
        "table",
        "rows",
        "missing",
        "extra",
        "value",
        "double",
        "on their way",
        "seconds",
        "result",
    )
    parts.append(_table(columns, [_cells(verified.proof) for verified in report.tables]))
    for verified in report.tables:
        differences = verified.proof.differences
        if differences:
            parts.append(f"<h2>{escape(verified.proof.table)}</h2>")
            rows = []
            for difference in differences:
                # The key has a column of its own.
                text = sentence(difference).removeprefix(f"{difference.key} ")
                rows.append((difference.key, text))
            parts.append(_table(("object", "difference and reason"), rows))
    return "".join([*parts, "</body></html>\n"]).encode()


def as_metrics(report: VerifyReport, seconds: float) -> bytes:
    """Write Prometheus's text form, for a collector of files; `seconds` is the time since 1970."""
    from prometheus_client import generate_latest
    from prometheus_client.registry import CollectorRegistry

    from eventlog.web.metrics import ProofCollector

    registry = CollectorRegistry(auto_describe=False)
    # As the publisher's own metrics have them, so that alerts are the same.
    proofs = [last_proof(verified.proof, report.output, seconds) for verified in report.tables]
    registry.register(ProofCollector(proofs))
    return generate_latest(registry)


def _cells(proof: TableProof) -> tuple[object, ...]:
    if not proof.compared:
        result = "not compared"
    elif proof.equal:
        result = "equal"
    else:
        result = proof.problem or "differs"
    counts = (proof.missing, proof.extra, proof.value, proof.double, proof.waiting)
    return (
        proof.table,
        proof.rows,
        *counts,
        f"{proof.seconds:.1f}",
        " ".join([result, *proof.notes]),
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = ""
    for row in rows:
        cells = [f"<td>{escape(make_readable(str(cell)))}</td>" for cell in row]
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table><tr>{head}</tr>{body}</table>"


def _quote(text: str | None) -> str:
    if text is None:
        return "NULL"
    return repr(text)


FORMS: Final = {".html": as_html, ".json": as_json, ".txt": as_text}
"""How a report is written, by the ending of its file."""
