"""Where the files of plans come together: a folder, or the objects below an address.

Law: the files of a plan are there all together or not at all, whoever is stopped where. What is
hidden is seen by nobody; one step commits a plan, and who comes next finishes what was committed
and removes everything else. Only the latest owner commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from eventlog.core.seams import Resolved, Tenure


class HiddenFiles(Protocol):
    """The files of one try to prepare a plan."""

    def discard(self) -> None:
        """Removes them, as far as that can be done."""


class Plans(Protocol):
    """A place of files in which plans are shown.

    Names are paths below `folder`; nothing else reads or writes there.

    SinkError, or OSError in a folder, says what went wrong.
    """

    folder: Any
    plan: str
    """The plan that is shown last, all of it."""

    def take_over(self, tenure: Tenure | None) -> None:
        """Makes the place ours, and settles what its former owner left."""

    def finish_former(self) -> object:
        """Shows the rest of the plan that was begun, and removes what is hidden of others."""

    def make(self, folder: Any) -> None:
        """Makes a folder that files are to be hidden in, if it is not there."""

    def hide(self, plan: str, files: Sequence[tuple[Any, bytes]]) -> Any:
        """Writes files that nobody sees yet, durable when it returns."""

    def show(self, hidden: Any, *, apart: int = 0, last: str = "") -> None:
        """Gives files their names if the place is still ours, durable when it returns.

        So many of the last come `apart`, once all others are durable. Without a plan nobody
        finishes what breaks off. `last` is the greatest id among them, for a place that cannot be
        searched for it.
        """

    def read(self, path: Any) -> bytes | None:
        """Read a file; None if there is none."""

    def last(self, ids: Callable[[Iterable[PurePath]], Iterator[str]]) -> str:
        """Return the greatest id of the files; `ids` reads ids from their names."""


def resolve(shown: str, plan: str) -> Resolved:
    """Resolve a plan, given the one last shown: all of it is there or nothing."""
    if plan and plan == shown:
        return Resolved(last=shown, documents=None)
    return Resolved(last=shown, documents=frozenset())
