"""Runs histories by their seeds: `python -m tests.histories FROM TO [--database …] [--outputs …] [--profile …]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.histories.grounds import Ground, SqliteGround
from tests.histories.profiles import PROFILES
from tests.histories.receiving import Receiver
from tests.histories.staging import staged
from tests.histories.targets import Http
from tests.histories.world import World, Wrong
from msgspec.structs import replace


def main() -> int:
    """How many histories went wrong, at most 100."""
    asked = _arguments()
    profile = PROFILES[asked.profile]
    if asked.outputs:
        profile = replace(profile, kinds=asked.outputs)
    failed, counts, began = 0, Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="eventlog-histories-") as folder, Receiver().serving() as receiver, staged():
        Http.receiver = receiver
        ground: Ground = SqliteGround(Path(folder))
        for seed in range(asked.first, asked.last):
            try:
                counts += World(seed, ground, receiver, profile).run()
            except Wrong as wrong:
                failed += 1
                lines = str(wrong).splitlines()
                print("\n".join(lines if asked.trace else lines[:4]), file=sys.stderr)
                if asked.first_only:
                    break
    seconds = time.monotonic() - began
    count = asked.last - asked.first
    print(f"{count} histories, {failed} of them wrong, in {seconds:.1f} s: {count / seconds:.1f} a second; {dict(counts)}")
    return min(failed, 100)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--database", default="sqlite")
    parser.add_argument("--outputs", default="")
    parser.add_argument("--profile", default="everything", choices=sorted(PROFILES))
    parser.add_argument("--trace", action="store_true", help="all that happened in a history that went wrong")
    parser.add_argument("-x", dest="first_only", action="store_true", help="end at the first that went wrong")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
