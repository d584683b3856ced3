"""Which post a configuration means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from structlog.stdlib import BoundLogger

from eventlog.config import Config
from eventlog.daemon.logpost import LogPost
from eventlog.daemon.post import Post
from eventlog.daemon.streampost import StreamPost

if TYPE_CHECKING:
    from sqlalchemy import Engine


def post_of(config: Config, journal: BoundLogger, engine: Engine | None = None) -> Post:
    """The post, taken by nobody yet; `engine` is a log's database where it is open already."""
    return LogPost(config, engine) if config.source.kind == "log" else StreamPost(config, journal)
