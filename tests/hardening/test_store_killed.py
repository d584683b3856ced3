"""Publishers, conversions and archives into a bucket are killed at any moment of any request: nothing is lost, doubled or half
there.
"""

from __future__ import annotations

import os
import random
import signal
from io import BytesIO
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from tests.acceptance.command import ok
from tests.hardening.crash import configure, prepare, publisher
from tests.hardening.ledger.publishers import within
from tests.hardening.ledger.runs import waiting
from tests.hardening.replaying import Store, account_for_log, change_files, replay_rows, replay_xds, tables
from tests.hardening.writing import many_at_once
from tests.integration.publishing import site
from tests.support.converting import comparable, log_row, write_lines
from tests.support.forking import Forked
from tests.support.servers_store import DYING, ENVIRONMENT, PARTS, StoreServer, content, hashes, uploads

KILLS = [6, pytest.param(100, marks=pytest.mark.long)]
REQUESTS = 40
"""A process dies at one of its first ones."""

SLOW_SECONDS = 0.03
"""In which it dies while a request is on its way."""

COMING_SECONDS = 20.0
"""In which a publisher comes to its request, unless it has published all before."""

FORMS = (("--to", "xds"), ("--to", "change-tables"), ("--to", "messages"))
OLD = "2020-01-01 00:00:00"


class StoreTarget:
    """A prefix of a bucket, as a target of the crash tests."""

    def __init__(self, server: StoreServer, form: str, copied: Path) -> None:
        self.server, self.form, self.address = server, form, server.address()
        self.copied = copied
        self.style, self.changes = ("field", 1) if form == "xds" else ("row-back", 3)

    def config(self) -> str:
        store = f'{{ endpoint = "{self.server.url}", region = "us-east-1" }}'
        return f'sink = "files"\npath = "{self.address}"\nformat = "{self.form}"\nstore = {store}\n'

    def content(self) -> dict[str, bytes]:
        return content(self.server.objects(self.address))

    def check(self, source: Engine) -> Store:
        """What stands there, once the log is accounted for."""
        if self.form == "xds":
            store, told = replay_xds(body for name, body in self.content().items() if name.endswith(".xml"))
            account_for_log(source, told)
            return store
        account_for_log(source, None)
        for name, body in self.content().items():
            (self.copied / name).parent.mkdir(parents=True, exist_ok=True)
            (self.copied / name).write_bytes(body)
        return replay_rows(change_files(self.copied))


@pytest.mark.in_turn
@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("form", ["xds", "change-tables"])
def test_a_bucket_has_every_change_once_when_its_publisher_dies(
    s3_store: StoreServer, sqlite: Engine, tmp_path: Path, form: str, kills: int
) -> None:
    """What a reader saw at any time is still there, as it was."""
    dice, died, seen = random.Random(f"{form} {kills}"), 0, dict[str, str | None]()
    aim = StoreTarget(s3_store, form, tmp_path / "copied")
    objects = s3_store.objects(aim.address)
    prepare(sqlite, aim.style)
    # A batch of twenty rows takes more requests than these lives have.
    config = configure(sqlite, tmp_path, aim, query_limit=4)
    while died < kills:
        many_at_once(sqlite, dice, 4)
        before, seconds = dice.randint(1, REQUESTS), dice.choice([0, dice.uniform(0, SLOW_SECONDS)])
        one = publisher(config, program=DYING.format(before=before, seconds=seconds), **ENVIRONMENT)
        within(lambda: not one.alive or not waiting(sqlite), COMING_SECONDS, pause=0.05)  # noqa: B023  # used at once
        died += one.process.poll() == -signal.SIGKILL
        one.kill()
        found = hashes(objects)
        assert {name: found[name] for name in seen} == seen
        seen = {name: tag for name, tag in found.items() if name.endswith((".xml", ".parquet"))}
    ok("run", "--until-empty", "--config", config, environment={**os.environ, **ENVIRONMENT})
    assert waiting(sqlite) == 0
    assert aim.check(sqlite) == tables(sqlite)
    found = hashes(objects)
    assert {name: found[name] for name in seen} == seen
    assert not [name for name in objects.names() if name.startswith(".eventlog/hidden")]


def timeless(files: dict[str, bytes]) -> dict[str, bytes]:
    """What is the same of two conversions."""
    return {name: comparable(Path(name).name, body) for name, body in files.items()}


@pytest.mark.in_turn
@pytest.mark.parametrize("kills", KILLS)
def test_a_conversion_that_is_killed_at_any_moment_leaves_nothing_half_there(
    s3_store: StoreServer, tmp_path: Path, kills: int
) -> None:
    """One after the other, each until it is complete; all files are uploaded in parts."""
    dice, died, complete = random.Random(kills), 0, 0
    rows = [log_row(number, table_key=f"idu={number}", new_value=f"n{number}") for number in range(1, 31)]
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(tmp_path)}
    source = s3_store.address()
    s3_store.objects(source).put("a.jsonl", write_lines(tmp_path / "a.jsonl", rows))
    while died < kills:
        form = FORMS[complete % len(FORMS)]
        words = ["convert", source, "--engine", "local[1]", "--part-events", "8", *form]
        whole = tmp_path / f"whole-{complete}"
        ok(*words, "--out", str(whole), environment=environment)
        expected = {str(file.relative_to(whole)): file.read_bytes() for file in whole.rglob("*") if file.is_file()}
        address = s3_store.address()
        objects = s3_store.objects(address)
        while True:
            seconds = dice.choice([0, dice.uniform(0, SLOW_SECONDS)])
            program = PARTS + DYING.format(before=dice.randint(1, REQUESTS), seconds=seconds)
            code = Forked(*words, "--out", address, environment=environment, program=program).wait(120)
            assert code in (0, -signal.SIGKILL)
            died += code != 0
            found = content(objects)
            assert "_SUCCESS" not in found or set(found) == set(expected)
            assert timeless(found).items() <= timeless(expected).items()
            if code == 0:
                break
        assert set(objects.names()) == set(expected)
        assert not uploads(s3_store, address)
        complete += 1
    assert not list(tmp_path.glob("eventlog-*"))


@pytest.mark.in_turn
@pytest.mark.parametrize("kills", KILLS)
def test_a_purge_that_is_killed_at_any_moment_deletes_nothing_that_is_not_archived(
    s3_store: StoreServer, sqlite: Engine, tmp_path: Path, kills: int
) -> None:
    dice, died, written = random.Random(kills), 0, 0
    log, address = site(sqlite), s3_store.address()
    environment = {**ENVIRONMENT, "AWS_ENDPOINT_URL": s3_store.url, "TMPDIR": str(tmp_path)}
    words = ("purge", "--database", str(sqlite.url), "--older-than", "1d", "--yes", "--archive", address)
    objects = s3_store.objects(address)
    while died < kills or log.statuses():
        for _ in range(3 if died < kills else 0):
            written += 1
            log.write(written, status="S", event_time=OLD)
        program = ""
        if died < kills:
            seconds = dice.choice([0, dice.uniform(0, SLOW_SECONDS)])
            program = PARTS + DYING.format(before=dice.randint(1, 4), seconds=seconds)
        code = Forked(*words, environment=environment, program=program).wait(120)
        assert code in (0, -signal.SIGKILL)
        died += code != 0
        files = [pq.ParquetFile(BytesIO(body)).read() for body in content(objects).values()]
        archived = {number for file in files for number in file.column("record_id").to_pylist()}
        assert archived | set(log.statuses()) == set(range(1, written + 1))
    assert died
    assert not uploads(s3_store, address)
