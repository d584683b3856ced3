"""A kept condition (--when) is the log owner's code, and is run with nobody else's rights."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.core.errors import InstallError
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import loads
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TriggerOptions
from tests.support.logged import USR, left_by, run

TRAP = (
    "CREATE SCHEMA owners AUTHORIZATION log_owner",
    "GRANT CREATE ON SCHEMA public TO log_owner",
    "CREATE TABLE owners.caught (who text)",
    "GRANT ALL ON owners.caught TO PUBLIC",
    "GRANT USAGE ON SCHEMA owners TO PUBLIC",
    """CREATE FUNCTION owners.trap() RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS 'BEGIN
    INSERT INTO owners.caught VALUES (current_user); RETURN true; EXCEPTION WHEN OTHERS THEN RETURN true; END'""",
)


@pytest.fixture
def owner(postgresql: Engine):  # type: ignore[no-untyped-def] # noqa: ANN201 # a generator of an engine
    run(postgresql, "CREATE ROLE log_owner LOGIN", *TRAP, *USR)
    run(postgresql, "ALTER TABLE usr OWNER TO log_owner", "ALTER TABLE usr_phone OWNER TO log_owner")
    engine = create_engine(postgresql.url.set(username="log_owner"))
    yield engine
    engine.dispose()
    run(postgresql, "DROP OWNED BY log_owner CASCADE", "DROP ROLE log_owner")


def caught(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.execute(text("SELECT who FROM owners.caught")).scalars())


def load(engine: Engine, reading: Engine | None = None) -> Refresh:
    log = Log(engine, LogNames(schema="public"))
    [one] = loads(engine, log.names, ["usr"], None, None)
    return Refresh(log, one, reading=reading)


def test_superusers_first_are_refused_and_run_nothing_of_it(postgresql: Engine, owner: Engine) -> None:
    install(owner)
    track(owner, ["usr"], TriggerOptions(when="owners.trap()"))
    run(owner, "DELETE FROM owners.caught")
    with pytest.raises(InstallError, match=r"code of log_owner.*nobody else runs it.*source\.reader"):
        load(postgresql)
    track(postgresql, ["usr"])
    run(postgresql, "ALTER TABLE usr ADD COLUMN more text")
    track(postgresql, ["usr"])
    assert caught(postgresql) == set()
    work = load(owner)
    list(work.steps(work.begin()))
    assert left_by(postgresql, "INSERT INTO usr (idu) VALUES (1)") != []
    assert caught(postgresql) <= {"log_owner"}


def test_a_login_that_reads_may_ask_it(postgresql: Engine, owner: Engine) -> None:
    install(owner)
    track(owner, ["usr"], TriggerOptions(when="idu > 1"))
    run(owner, "GRANT SELECT ON usr TO PUBLIC")
    reader = create_engine(postgresql.url)
    work = load(postgresql, reader)
    assert [step.done for step in work.steps(work.begin())][-1]
    reader.dispose()
