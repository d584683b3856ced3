"""A format behind a policy: it writes what the policy makes of changes, of tables as they look behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eventlog.core.model import Change, Document, Refusal
from eventlog.core.policies.bound import Policy
from eventlog.core.policies.steps import Steps
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format, Writer


class PolicyFormat:
    """Writes changes in another format, after the steps."""

    def __init__(self, form: Format, steps: Steps) -> None:
        self._form = form
        self._steps = steps
        self._bound: Policy | None = None
        self._catalog: Catalog | None = None

    @property
    def suffix(self) -> str:
        return self._form.suffix

    @property
    def counts(self) -> bool:
        """As the other format does, of what the policy tells."""
        return self._form.counts

    def writer(self, catalog: Catalog | None) -> Writer:
        """Writes what the policy makes of each change, or says why nothing is written of it."""
        policy = self._policy(catalog)
        write_all = self._form.writer(policy.catalog)

        def write(changes: Iterable[Change]) -> Iterator[Any]:
            refusals: list[Refusal] = []

            def told() -> Iterator[Change]:
                for change in changes:
                    found = policy.tell(change)
                    if isinstance(found, Refusal):
                        refusals.append(found)
                    else:
                        yield found

            for written in write_all(told()):
                if refusals:
                    yield from refusals
                    refusals.clear()
                yield written
            yield from refusals

        return write

    def bind(self, written: Iterable[Any], after: str, whole: bool = False) -> Iterator[Document]:
        """As the other format does."""
        return self._form.bind(written, after, whole)

    def heartbeat(self) -> Document | None:
        """As the other format does."""
        return self._form.heartbeat()

    def _policy(self, catalog: Catalog | None) -> Policy:
        """The steps for these tables; kept, for a writer is made for every batch and expressions take time to be read."""
        if self._bound is None or catalog is not self._catalog:
            self._bound, self._catalog = Policy(self._steps, catalog), catalog
            self._bound.check(whole=False)
        return self._bound
