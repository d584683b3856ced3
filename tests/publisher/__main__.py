"""Random histories of the journal: python -m tests.publisher FROM TO [URL]."""

from __future__ import annotations

import collections
import sys
from pathlib import Path
from tempfile import mkdtemp
from time import perf_counter

from tests.publisher.running import history, opened


def main() -> None:
    begin, end = int(sys.argv[1]), int(sys.argv[2])
    folder = Path(mkdtemp(prefix="eventlog-histories-"))
    engine = opened(sys.argv[3] if len(sys.argv) > 3 else f"sqlite:///{folder / 'log.db'}")
    total: collections.Counter[str] = collections.Counter()
    began = perf_counter()
    for seed in range(begin, end):
        total.update(history(seed, engine))
        total["histories"] += 1
    sys.stdout.write(f"{dict(total)} {perf_counter() - began:.1f} s\n")


if __name__ == "__main__":
    main()
