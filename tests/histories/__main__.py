"""Runs histories by their seeds: `python -m tests.histories FROM TO [--database …] [--outputs …] [--profile …]`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from msgspec.structs import replace

from tests.histories.grounds import ground
from tests.histories.profiles import PROFILES
from tests.histories.receiving import Receiver
from tests.histories.staging import staged
from tests.histories.targets import Http
from tests.histories.world import World, Wrong


def main() -> int:
    """How many histories went wrong, at most 100."""
    asked = _arguments()
    profile = PROFILES[asked.profile]
    if asked.off:
        off = dict.fromkeys(asked.off.split(","), 0.0)
        profile = replace(profile, accidents=replace(profile.accidents, **off))
    if asked.outputs:
        profile = replace(profile, kinds=asked.outputs)
    failed, counts, began = 0, Counter[str](), time.monotonic()
    with ground(asked.database) as place, Receiver().serving() as receiver, staged():
        Http.receiver = receiver
        for seed in range(asked.first, asked.last):
            try:
                counts += World(seed, place, receiver, profile).run()
            except Wrong as wrong:
                failed += 1
                print(wrong if asked.trace else "\n".join([*wrong.findings, *wrong.again]), file=sys.stderr)
                if asked.first_only:
                    break
    seconds = time.monotonic() - began
    count = asked.last - asked.first
    print(
        f"{count} histories, {failed} of them wrong, in {seconds:.1f} s: {count / seconds:.1f} a second; {dict(counts)}"
    )
    return min(failed, 100)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--database", default="sqlite", choices=("sqlite", "postgresql", "mariadb"))
    parser.add_argument("--outputs", default="")
    parser.add_argument("--off", default="", help="accidents that do not happen, with commas between them")
    parser.add_argument("--profile", default="everything", choices=sorted(PROFILES))
    parser.add_argument("--trace", action="store_true", help="all that happened in a history that went wrong")
    parser.add_argument("-x", dest="first_only", action="store_true", help="end at the first that went wrong")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
