"""An Oracle that only listens: SQLAlchemy's own dialect and driver module on a connection that notes what reaches it.

It refuses what Oracle refuses of any statement, in plain SQL and inside blocks: a text of more than 4,000 bytes that is not
bound as a CLOB (ORA-01461), and one that may have so many behind a CLOB (ORA-24816).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Engine, create_engine

LONGEST_TEXT_BYTES = 4000
BYTES_OF_A_CHARACTER = 4
"""What the driver reserves for each."""
Answers = Callable[[str], Sequence[tuple[Any, ...]]]


class Recorder:
    """Statements with their parameters and input sizes, in the order in which they came; `answers` makes up results."""

    def __init__(self, answers: Answers = lambda _: ()) -> None:
        self.answers = answers
        self.seen: list[tuple[str, Any]] = []
        self.sizes: list[dict[str, Any]] = []
        # Asking the server for its version and settings when it connects is what _initialize would do.
        self.engine: Engine = create_engine("oracle+oracledb://", creator=lambda: _Connection(self), _initialize=False)

    @property
    def statements(self) -> list[str]:
        return [statement for statement, _ in self.seen]


class _Connection:
    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.outputtypehandler: Any = None

    def cursor(self) -> _Cursor:
        return _Cursor(self.recorder)

    def commit(self) -> None:
        self.recorder.seen.append(("COMMIT", None))

    def rollback(self) -> None:
        """Ends a transaction, as a pool does with every connection that comes back."""

    def close(self) -> None:
        """There is nothing to close."""


class _Cursor:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._rows: list[tuple[Any, ...]] = []
        self.description: Any = None
        self.rowcount = 0
        self.arraysize = 100
        self.outputtypehandler: Any = None
        self._sizes: dict[str, Any] = {}

    def setinputsizes(self, *_: Any, **sizes: Any) -> None:
        self._sizes = sizes
        self._recorder.sizes.append(sizes)

    def _check(self, statement: str, parameters: Any) -> None:
        for name, value in dict(parameters or {}).items():
            is_long = isinstance(value, str) and len(value.encode()) > LONGEST_TEXT_BYTES
            if is_long and getattr(self._sizes.get(name), "name", None) != "DB_TYPE_CLOB":
                raise AssertionError(f"ORA-01461: {len(value.encode())} bytes are bound to :{name} in {statement}")
            is_string = isinstance(value, str) and name not in self._sizes
            if is_string and self._sizes and len(value) * BYTES_OF_A_CHARACTER > LONGEST_TEXT_BYTES:
                raise AssertionError(
                    f"ORA-24816: {len(value)} characters are bound to :{name} beside a LOB: {statement}"
                )

    def execute(self, statement: str, parameters: Any = None) -> None:
        self._check(statement, parameters)
        self._recorder.seen.append((statement, parameters))
        self._rows = list(self._recorder.answers(statement))
        is_query = statement.lstrip().upper().startswith(("SELECT", "WITH"))
        width = len(self._rows[0]) if self._rows else 1
        names = [(f"C{place}", None, None, None, None, None, None) for place in range(width)]
        self.description = names if is_query else None

    def executemany(self, statement: str, parameters: Any) -> None:
        for row in (parameters := list(parameters)):
            self._check(statement, row)
        self._recorder.seen.append((statement, parameters))

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop(0) if self._rows else None

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        taken, self._rows = self._rows[:size], self._rows[size:]
        return taken

    def close(self) -> None:
        """There is nothing to close."""
