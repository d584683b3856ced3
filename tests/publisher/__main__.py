"""Random histories of the publisher by their seeds: python -m tests.publisher FROM TO [URL]."""

from __future__ import annotations

import collections
import sys
from tempfile import TemporaryDirectory
from time import perf_counter

from tests.publisher.running import history, opened


def main() -> None:
    begin, end = int(sys.argv[1]), int(sys.argv[2])
    total: collections.Counter[str] = collections.Counter()
    with TemporaryDirectory(prefix="eventlog-histories-") as folder:
        engine = opened(sys.argv[3] if len(sys.argv) > 3 else f"sqlite:///{folder}/log.db")
        began = perf_counter()
        for seed in range(begin, end):
            total.update(history(seed, engine))
            total["histories"] += 1
        sys.stdout.write(f"{dict(total)} {perf_counter() - began:.1f} s\n")
        engine.dispose()


if __name__ == "__main__":
    main()
