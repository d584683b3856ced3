"""How the core comes to streams: who publishes one, and the tables that it has described last."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Engine

from eventlog.core.plugins import StreamsPlugin
from eventlog.core.schema import Catalog
from eventlog.sources.stream.definitions import read_catalog
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.streams.stream_session import StreamPost


def catalog_of(engine: Engine, names: LogNames) -> Catalog:
    return read_catalog(Log(engine, names))


STREAMS: Final = StreamsPlugin(post=StreamPost, catalog=catalog_of)
