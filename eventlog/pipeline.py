"""One batch, all the way round: read, decide, encode, write, settle.

`settle` comes after `write`: a crash between the two repeats the batch, and every sink recognises a repeated document.
Nothing is settled that is not durable at every sink.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from eventlog.model import Document, Outcome, Position, Reason, Refusal, Row, RowId, Status
from eventlog.rules import Decision, Options, judge, screen, wanted
from eventlog.rules.meaning import STATUS
from eventlog.schema import Catalog
from eventlog.seams import Batch, Format, RowReader, Sink, Source

SEVERITY = {Status.SUCCESS: 0, Status.WARNING: 1, Status.ERROR: 2, Status.NEW: 3, Status.FATAL: 4}
"""Of several answers for one event the worst counts; asking for another time is worse than an error."""

CHUNK = 1000
"""Documents handed to a sink at once: enough to share the cost of a sync, few enough to keep memory flat."""


class Output(Struct, frozen=True, kw_only=True):
    """Where documents go: a format and the sink that takes it."""

    format: Format
    sink: Sink


class Report(Struct, frozen=True, kw_only=True):
    """What one round did."""

    events: int = 0
    changes: int = 0
    documents: int = 0
    statuses: Mapping[Status, int] = {}
    stale: bool = False
    """Nothing was done: rows could not be read, which may be because the tables have changed since they were looked at."""

    @property
    def fatal(self) -> bool:
        return Status.FATAL in self.statuses

    @property
    def settled(self) -> int:
        """Events that will not be offered again."""
        return self.events - self.statuses.get(Status.NEW, 0)


class Pipeline(Struct, frozen=True, kw_only=True):
    """A source, what its tables look like, the rules' options, and the outputs."""

    source: Source
    reader: RowReader | None
    catalog: Catalog | None
    outputs: Sequence[Output]
    options: Options
    limit: int = 10_000
    fresh: bool = True
    """The catalog was read just now, so what it does not know is unknown."""

    def go_round(self) -> Report:
        """Publishes one batch and settles it."""
        batch = self.source.read(self.limit)
        if not batch.events:
            return Report()
        decision = self.decide(batch)
        if not self.fresh and any(outcome.reason is Reason.INVALID for outcome in decision.outcomes):
            return Report(stale=True)
        answers: dict[Position, Outcome] = {}
        documents = sum(self._write(output, decision, answers) for output in self.outputs)
        outcomes = settled_outcomes(decision.outcomes, answers)
        self.source.settle(batch, outcomes)
        return Report(
            events=len(batch.events),
            changes=len(decision.changes),
            documents=documents,
            statuses=Counter(outcome.status for outcome in outcomes),
        )

    def decide(self, batch: Batch) -> Decision:
        """What the batch amounts to, with rows read back where events ask for them."""
        options = replace(self.options, now=batch.now)
        screened = screen(batch.events, self.catalog, options)
        return judge(screened, self._read_back(wanted(screened)), options)

    def _read_back(self, asked: Mapping[RowId, frozenset[str]]) -> Mapping[RowId, Row] | None:
        if self.reader is None:
            return None
        return self.reader.rows(asked) if asked else {}

    def _write(self, output: Output, decision: Decision, answers: dict[Position, Outcome]) -> int:
        """Writes every document of an output and collects what its receiver said; counts the documents."""
        count = 0
        encoded = output.format.encode(decision.changes, self.catalog, output.sink.last())
        for documents in _chunks(_without_refusals(encoded, answers), CHUNK):
            count += len(documents)
            for outcome in output.sink.write(documents):
                _keep_worse(answers, outcome)
        return count


def settled_outcomes(decided: Iterable[Outcome], answers: Mapping[Position, Outcome]) -> list[Outcome]:
    """The rules' outcomes with what formats and receivers said. A superseded event waits as long as its winner."""
    if not answers:
        return list(decided)
    outcomes = []
    for outcome in decided:
        winner = answers.get(outcome.winner) if outcome.winner is not None else None
        if winner is not None and winner.status is Status.NEW:
            outcomes.append(replace(outcome, status=Status.NEW, reason=winner.reason))
        else:
            outcomes.append(answers.get(outcome.position, outcome))
    return outcomes


def _without_refusals(encoded: Iterable[Document | Refusal], answers: dict[Position, Outcome]) -> Iterable[Document]:
    for item in encoded:
        if isinstance(item, Document):
            yield item
            continue
        for position in item.positions:
            status = STATUS[Reason.REFUSED]
            _keep_worse(answers, Outcome(position=position, status=status, reason=Reason.REFUSED, note=item.note))


def _keep_worse(answers: dict[Position, Outcome], outcome: Outcome) -> None:
    earlier = answers.get(outcome.position)
    if earlier is None or SEVERITY[outcome.status] > SEVERITY[earlier.status]:
        answers[outcome.position] = outcome


def _chunks(documents: Iterable[Document], size: int) -> Iterable[list[Document]]:
    chunk: list[Document] = []
    for document in documents:
        chunk.append(document)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
