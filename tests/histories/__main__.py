"""Runs histories by their seeds: `python -m tests.histories FROM TO [--database …] [--outputs …]
[--profile …]`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from msgspec.structs import replace

from tests.histories.faults import FAULTS
from tests.histories.grounds import ground
from tests.histories.profiles import PROFILES
from tests.histories.receiving import Receiver
from tests.histories.staging import staged
from tests.histories.targets import Http
from tests.histories.world import Profile, World, Wrong


def main() -> int:
    """How many histories went wrong, at most 100."""
    asked = _arguments()
    profile = _profile(asked)
    if asked.fault:
        fault = FAULTS[asked.fault]
        profile = fault.profile
        if asked.last is None:
            asked.first, asked.last = fault.seed, fault.seed + fault.seeds
    failed, done, counts, began = 0, 0, Counter[str](), time.process_time()
    with ground(asked.database) as place, Receiver().serving() as receiver, staged():
        Http.receiver = receiver
        for seed in range(asked.first, asked.last):
            done += 1
            try:
                counts += World(seed, place, receiver, profile).run()
            except Wrong as wrong:
                failed += 1
                _say(str(wrong) if asked.trace else "\n".join([*wrong.findings, *wrong.again]))
                if asked.first_only:
                    break
    cpu = (time.process_time() - began) / max(done, 1)
    _say(f"{done} histories, {failed} of them wrong, {cpu:.2f} s of CPU each; {dict(counts)}")
    return min(failed, 100)


def _profile(asked: argparse.Namespace) -> Profile:
    profile = PROFILES[asked.profile]
    if asked.off:
        off = dict.fromkeys(asked.off.split(","), 0.0)
        profile = replace(profile, accidents=replace(profile.accidents, **off))
    return replace(profile, kinds=asked.outputs) if asked.outputs else profile


def _say(what: str) -> None:
    sys.stdout.write(f"{what}\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.histories", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("last", type=int, nargs="?")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="histories that show a fault of the former heart")
    parser.add_argument("--database", default="sqlite", choices=("sqlite", "postgresql", "mariadb"))
    parser.add_argument("--outputs", default="", help="first letters of targets: x m c d h p")
    parser.add_argument("--off", default="", help="accidents that do not happen, with commas between them")
    parser.add_argument("--profile", default="everything", choices=sorted(PROFILES))
    parser.add_argument("--trace", action="store_true", help="all that happened in a history that went wrong")
    parser.add_argument("-x", dest="first_only", action="store_true", help="end at the first that went wrong")
    asked = parser.parse_args()
    if asked.last is None and not asked.fault:
        parser.error("the first seed and the one after the last are missing")
    return asked


if __name__ == "__main__":
    sys.exit(main())
