"""What receivers call our objects, in the table of the log that keeps it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import msgspec

from eventlog.core.associations import Association, AssociationTable, Awaiting
from eventlog.sources.marks import as_text
from eventlog.sql.log import Log
from eventlog.sql.names import NAME_CHARACTERS

BEGINNING_CHARACTERS: Final = 130
"""Characters of a long name that stay in front of its hash."""


class KeptAssociations(AssociationTable):
    """What the log keeps of one output."""

    def __init__(self, log: Log, output: str) -> None:
        self._log = log
        self._output = output

    def read(self, objects: Collection[str]) -> Mapping[str, Association]:
        """Read the associations of these objects."""
        return dict(self._rows("association_read", objects=as_text([*map(_shorten, objects)])))

    def read_awaited(self) -> Mapping[str, Association]:
        """Read all objects with something waiting for them."""
        return dict(self._rows("association_awaited"))

    def find(self, id: str) -> str | None:  # noqa: A002  # as its base calls it
        """Find the object with this id at the receiver."""
        return next((_name(*row) for row in self._ask("association_find", association=id)), None)

    def read_all(self) -> Mapping[str, str]:
        """Read all objects' ids at the receiver."""
        return {_name(name, whole): str(known) for name, whole, known in self._ask("association_all")}

    def _rows(self, query: str, **values: Any) -> Iterator[tuple[str, Association]]:
        for name, whole, association, awaiting, is_over in self._ask(query, **values):
            waiting = () if awaiting is None else msgspec.json.decode(awaiting, type=tuple[Awaiting, ...])
            yield _name(name, whole), Association(association, waiting, bool(is_over))

    def _ask(self, query: str, **values: Any) -> Sequence[Sequence[Any]]:
        log = self._log
        with log.transaction(lone=True) as connection:
            return log.rows(connection, log.query(query), {"output": self._output, **values})


def name_row(name: str) -> dict[str, str | None]:
    """Name the row of an object: by a long name's beginning and its hash, beside the whole name."""
    short = _shorten(name)
    return {"object": short, "whole_name": None if short == name else name}


def _shorten(name: str) -> str:
    if len(name) <= NAME_CHARACTERS:
        return name
    return f"{name[:BEGINNING_CHARACTERS]} {sha256(name.encode()).hexdigest()}"


def _name(name: Any, whole: Any) -> str:
    return str(name if whole is None else whole)
