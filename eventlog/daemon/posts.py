"""Which post a configuration means."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from structlog.stdlib import BoundLogger

from eventlog.config.settings import Config
from eventlog.daemon.logpost import LogPost
from eventlog.daemon.post import Post
from eventlog.daemon.streampost import StreamPost

if TYPE_CHECKING:
    from sqlalchemy import Engine


def post_of(
    config: Config, journal: BoundLogger, engine: Engine | None = None, alive: Callable[[], bool] = lambda: True
) -> Post:
    """The post, taken by nobody yet; `engine` is a log's database where it is open already.

    A log is given up to others while `alive` says that the publisher does not move.
    """
    return LogPost(config, engine, alive) if config.source.kind == "log" else StreamPost(config, journal)
