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

from eventlog.core.plural import counted
from eventlog.core.secrets import shown
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
        return all(one.proof.equal for one in self.tables)

    @property
    def plain(self) -> dict[str, Any]:
        """The report as JSON has it."""
        tables = [{**asdict(one.proof), "equal": one.proof.equal, "repaired": one.repaired} for one in self.tables]
        return {"at": self.at, "output": self.output, "equal": self.equal, "tables": tables}


def summary(verified: Verified) -> str:
    """One table in a sentence."""
    proof = verified.proof
    if proof.problem is not None:
        return f"{proof.table}: not compared. {proof.problem}"
    if not proof.compared:
        return f"{proof.table}: not compared."
    way = f"; {proof.waiting} on their way" if proof.waiting else ""
    rows = f"{counted(proof.rows, 'row')} in {proof.seconds:.1f} s"
    if proof.equal:
        return f"{proof.table}: equal, {rows}{way}."
    parts = [f"{count} {kind}" for kind in KINDS if (count := getattr(proof, kind))]
    least = "at least " if proof.more else ""
    mended = f" {counted(verified.repaired, 'object')} will be published again." if verified.repaired else ""
    verb = "differs" if proof.differing == 1 else "differ"
    return (
        f"{proof.table}: {least}{counted(proof.differing, 'object')} {verb} ({', '.join(parts)}), {rows}{way}.{mended}"
    )


def sentence(found: NamedDifference) -> str:
    """One difference in a line, with the reason that the log has for it."""
    values = "; ".join(
        f"{one.column} is {_quoted(one.source)} in the source and {_quoted(one.target)} in the output"
        for one in found.values
    )
    return f"{found.key} {values or KINDS[found.kind]}. {why(found)}"


def why(found: NamedDifference) -> str:
    """What the log says about the object."""
    if found.record_id is None:
        return "The log has no row about it."
    usual = "published" if found.status == "S" else None
    said = " ".join(part for part in (found.status, found.reason or usual) if part)
    note = f": {found.note.rstrip('.')}" if found.note else ""
    return f"Last row {found.record_id}: {said}{note}."


def lines(report: VerifyReport) -> Iterator[str]:
    """The report as text."""
    for one in report.tables:
        yield shown(summary(one))
        yield from (f"  {shown(sentence(found))}" for found in one.proof.differences)
        hidden = one.proof.differing - len(one.proof.differences)
        if hidden > 0:
            yield f"  and {hidden} more"
        yield from (f"  {shown(note)}" for note in one.proof.notes)


def as_text(report: VerifyReport) -> bytes:
    head = f"eventlog verify, {report.at}, {report.output or 'no output'}"
    return "\n".join([head, *lines(report), ""]).encode()


def as_json(report: VerifyReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report.plain), indent=2) + b"\n"


def as_html(report: VerifyReport) -> bytes:
    """A page that needs nothing beside it."""
    state = "equal" if report.equal else "differs"
    word = "Source and output are equal." if report.equal else "Source and output differ."
    parts = [
        HEAD,
        f"<h1 class='{state}'>{word}</h1><p>{escape(report.at)} UTC, {escape(report.output)}</p>",
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
    parts.append(_table(columns, [_cells(one.proof) for one in report.tables]))
    for one in report.tables:
        if one.proof.differences:
            parts.append(f"<h2>{escape(one.proof.table)}</h2>")
            rows = [(found.key, sentence(found).removeprefix(f"{found.key} ")) for found in one.proof.differences]
            parts.append(_table(("object", "difference and reason"), rows))
    return "".join([*parts, "</body></html>\n"]).encode()


def as_metrics(report: VerifyReport, seconds: float) -> bytes:
    """In the text form of Prometheus, for a collector that reads files; `seconds` is the time since
    1970.
    """
    from prometheus_client import generate_latest
    from prometheus_client.registry import CollectorRegistry

    from eventlog.daemon.metrics import ProofCollector

    registry = CollectorRegistry(auto_describe=False)
    registry.register(ProofCollector([last_proof(one.proof, report.output, seconds) for one in report.tables]))
    return generate_latest(registry)


def _cells(proof: TableProof) -> tuple[object, ...]:
    result = proof.problem or ("equal" if proof.equal else "differs")
    result = result if proof.compared else "not compared"
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
    body = "".join("<tr>" + "".join(f"<td>{escape(shown(str(cell)))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else repr(text)


FORMS: Final = {".html": as_html, ".json": as_json, ".txt": as_text}
"""How a report is written, by the ending of its file."""
