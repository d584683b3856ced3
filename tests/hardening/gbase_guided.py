"""A coverage-guided fuzzer of GBase streams: `python -m tests.hardening.gbase_guided frames|values [--seconds N] [--keep DIR]`.

It needs the package atheris, which no lock of this project has: `pip install atheris`. It begins with the kept corpus and
writes what reached new code into `--keep`; an input that breaks something is left there too, as `crash-…`. What was
found is kept in tests/corpora/gbase and gbase_rows, which the ordinary tests read whole, byte by byte and damaged.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

CORPORA = Path(__file__).resolve().parents[1] / "corpora"
LONGEST = 2048
"""Bytes of an input: several records of every kind, and reading it byte by byte stays quick."""


def main(arguments: list[str] | None = None) -> None:
    """Runs until the time is over, or until something breaks."""
    parser = argparse.ArgumentParser(prog="python -m tests.hardening.gbase_guided", description=__doc__)
    parser.add_argument("part", choices=["frames", "values"])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args(arguments)
    keep = chosen.keep or Path(tempfile.mkdtemp(prefix="eventlog-gbase-"))
    keep.mkdir(parents=True, exist_ok=True)
    sys.stderr.write(f"What is found goes to {keep}.\n")
    atheris: Any = _atheris()
    with atheris.instrument_imports(include=["eventlog.sources.gbase", "eventlog.sources.stream.transactions"]):
        fuzzed = importlib.import_module("tests.support.gbase_fuzzed")
    target = {"frames": fuzzed.read_alike, "values": fuzzed.row_reads_again}[chosen.part]
    corpus = CORPORA / {"frames": "gbase", "values": "gbase_rows"}[chosen.part]
    options = [f"-max_total_time={chosen.seconds}", f"-max_len={LONGEST}", "-timeout=10", "-rss_limit_mb=1024"]
    atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={keep}/", str(keep), str(corpus)], target)
    atheris.Fuzz()


def _atheris() -> Any:
    try:
        return importlib.import_module("atheris")
    except ImportError:
        sys.exit("The package atheris is not installed; `pip install atheris` gets it.")


if __name__ == "__main__":
    main()
