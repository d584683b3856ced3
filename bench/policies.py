"""What five policy steps add to publishing and to converting, in seconds of the processor."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from bench.backlog import Backlog, Standing, backlog, temporary_folder
from bench.convert import log_file
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.rules import CATALOG
from eventlog.config.settings import Config
from eventlog.core.schema_file import catalog_to_json
from eventlog.policies.steps import Compute, Hash, Keep, Map, Rename, Steps, Text
from eventlog.sinks.outputs import FilesOutput

PROMISED: Final = 1.15
"""Of the time without a policy."""
SECRET: Final = "a secret of benchmarks only"  # noqa: S105  # it hides nothing
STEPS: Final[Steps] = (
    Rename(attributes={"fname": "Given Name", "lname": "Surname"}, class_name="User"),
    Keep(attributes=("Given Name", "Surname", "mail", "phone", "city")),
    Compute(attribute="is local", expression='new.city.startsWith("new 1")', type="boolean"),
    Hash(attributes=("mail",), secret=SECRET),
    Map(attributes=("phone",), values={"new 4": "four"}),
)
WORDS: Final[Steps] = (
    *STEPS[:2],
    Text(attributes=("Surname",), to="upper"),
    Map(attributes=("phone",), values={"new 4": "four"}),
    Map(attributes=("city",), values={"new 3": "three"}),
)
"""Five steps that call, leave out and map: nothing is computed, and nothing is hidden by a secret."""
CONFIG: Final = f"""\
[[output]]
sink = "files"
path = "elsewhere"

[[output.steps]]
do = "rename"
class_name = "User"
attributes = {{ fname = "Given Name", lname = "Surname" }}

[[output.steps]]
do = "keep"
attributes = ["Given Name", "Surname", "mail", "phone", "city"]

[[output.steps]]
do = "compute"
attribute = "is local"
expression = 'new.city.startsWith("new 1")'
type = "boolean"

[[output.steps]]
do = "hash"
attributes = ["mail"]
secret = "{SECRET}"

[[output.steps]]
do = "map"
attributes = ["phone"]
values = {{ "new 4" = "four" }}
"""
"""The same steps as somebody writes them."""


class Behind(Standing):
    """A publisher whose output stands behind steps."""

    def __init__(self, log: Backlog, steps: Steps) -> None:
        self._steps = steps
        super().__init__(log)

    def config(self) -> Config:
        """How it publishes."""
        config = super().config()
        [output] = config.output
        assert isinstance(output, FilesOutput)
        return replace(config, output=(replace(output, steps=self._steps),))


def benchmark(*, quick: bool) -> Benchmark:
    """Publisher and conversion, each without a policy and with five steps."""
    waiting = 2_000 if quick else 100_000
    logs = [backlog(name, waiting) for name in ("plain_log", "words_log", "policies_log")]
    folder, rows = temporary_folder(), waiting
    (folder / "schema.json").write_bytes(catalog_to_json(CATALOG))
    (folder / "steps.toml").write_text(CONFIG)
    source = log_file(folder / "log.parquet", rows)
    return Benchmark(
        name="policies",
        question="what do five policy steps add?",
        unit="row",
        contestants=[
            _publishing("publish", logs[0], Standing(logs[0]), floor=True),
            _publishing("publish, five steps of words", logs[1], Behind(logs[1], WORDS)),
            _publishing("publish, five steps", logs[2], Behind(logs[2], STEPS)),
            Contestant(name="convert", run=partial(_converted, source), units=rows),
            Contestant(name="convert, five steps", run=partial(_converted, source, "steps.toml"), units=rows),
        ],
        targets=_targets,
        note=(
            "Rename of two attributes and the class, keep, a value computed in CEL from one that is never the same, HMAC,"
            " and a map of values; those of words are rename, keep, upper case and two maps. Per-field rows: each object is inserted (6 rows) and updated (2 rows). Seconds are those"
            " of the processor in eventlog's own processes, start of the conversion included, without the database."
        ),
    )


def _publishing(name: str, log: Backlog, publisher: Standing, *, floor: bool = False) -> Contestant:
    run = partial(_worked, publisher.publish)
    return Contestant(name=name, prepare=log.refill, run=run, units=log.count, floor=floor)


def _worked(work: Callable[[], None]) -> float:
    """Seconds of the processor that this process, its threads included, has for the work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _converted(source: Path, config: str = "") -> float:
    """Seconds of the processor that the command has, from Python's start."""
    words = ["--schema", "schema.json", "--out", "out", "--overwrite", "--engine", "local[1]"]
    words += ["--config", config] if config else []
    command = [sys.executable, "-m", "eventlog", "convert", source.name, *words]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    start = _of_children()
    subprocess.run(command, cwd=source.parent, check=True, capture_output=True, env=environment)
    found = _of_children() - start
    shutil.rmtree(source.parent / "out")
    return found


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _targets(timings: Timings) -> list[Target]:
    found = []
    for name, kind in (("publish", " of words"), ("publish", ""), ("convert", "")):
        times = timings[f"{name}, five steps{kind}"].each / timings[name].each
        found.append(
            Target(
                promise=f"{name} with five steps{kind} at most {PROMISED:g} times the work",
                measured=f"{times:.2f} times",
                reached=times <= PROMISED,
            )
        )
    return found
