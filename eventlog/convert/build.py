"""From an order of `eventlog convert` to the conversion, or to what does not go together in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path

from msgspec.structs import replace

from eventlog.cli.site import DEFAULT_FILE, content_of
from eventlog.config.build import options_of, reads_originators
from eventlog.config.settings import Config, load
from eventlog.convert.orders import FilesOrder, GBaseOrder, LinterOrder, LogOrder, Order, is_foreign, scheme_of
from eventlog.convert.settings import (
    Conversion,
    DatabaseRows,
    FilesInput,
    LogInput,
    SentMessages,
    SentTables,
    SnapshotRows,
    StreamInput,
)
from eventlog.convert.targets import (
    refuse_target,
    refuse_unread_policies,
    steps_of_order,
    target_of,
    transactions_of,
)
from eventlog.core.errors import DataError, UsageError
from eventlog.core.schema import Catalog
from eventlog.core.schema_file import catalog_from_json
from eventlog.core.secrets import visible
from eventlog.sql.clocks import DATABASE, clock_of

SPARK_BYTES = 256_000_000
"""Bytes of input from which on Spark is worth its start."""

SPARK_ROWS = 5_000_000
"""Rows of a database from which on it is."""


def config_of(order: Order) -> Config:
    """Read the configuration, after words of the command that cannot be combined are refused."""
    refuse_order(order)
    refuse_unread_policies(order, DEFAULT_FILE)
    return load(order.config)


def conversion_of(order: Order, config: Config) -> Conversion:
    """Build the conversion; UsageError or ConfigError names what cannot be combined."""
    if order.places.fetched:
        from eventlog.convert.fetching import fetch

        # Not before all words are known to go together.
        fetch(order.places.fetched)
    asked = order.source
    source: LogInput | FilesInput | StreamInput
    if isinstance(asked, FilesOrder):
        source = _files(asked, config, _clock_of_files(asked, config))
    elif isinstance(asked, LogOrder):
        source = _log(asked, config)
    else:
        source = _stream(asked, config)
    read_back = choose_read_back(order, config)
    catalog = _catalog(order, config, source, read_back)
    steps = steps_of_order(order, config)
    target = target_of(order.target, config)
    if isinstance(target, SentTables | SentMessages) and (order.places.addresses or order.places.stored):
        message = f"A conversion that sends cannot be combined with an address: {order.places.shown}."
        raise UsageError(message, hint="Take a folder.")
    # A stream has whole images, so a policy finds in them what it looks at.
    if steps and catalog is not None and not isinstance(source, StreamInput):
        from eventlog.policies.plugin import needs_of

        output = order.target.output or f"of the format {order.target.to}"
        needs_of([(output, steps)], catalog)
    # A database's own user is the one it is read as, unless another is named.
    user = None if not isinstance(asked, LogOrder) else _user_of(asked.url)
    return Conversion(
        input=source,
        destination=order.places.out,
        catalog=catalog,
        options=options_of(config, user),
        format=target,
        part_events=order.target.part_events,
        read_back=read_back,
        overwrite=order.overwrite,
        steps=steps,
        transactions=transactions_of(order.target, config),
        who=reads_originators(config),
    )


def is_worth_spark(order: Order, config: Config) -> bool:
    """Return True if Spark should do it where it can: the options are for it, or the input is worth its start."""
    if order.engine.is_spark:
        return True
    if isinstance(order.source, LogOrder):
        return _count_rows(_log(order.source, config)) >= SPARK_ROWS
    return _size(order, config) >= SPARK_BYTES


def refuse_order(order: Order) -> None:
    """Refuse words of the command that cannot be combined."""
    if str(order.places.out) == "-":
        raise UsageError("--out - is no folder; name one for the output.")
    _refuse_addresses(order)
    refuse_target(order)
    for word in filter(is_foreign, order.inputs):
        hint = "To read a live queue use `eventlog run`."
        if order.command == "files":
            hint = "The log of a database is converted by `eventlog convert database URL`."
        raise UsageError(f"INPUT {visible(word)} is no address of a file system.", hint=hint)
    if isinstance(order.source, FilesOrder) and None not in (order.source.database, order.source.snapshot):
        raise UsageError("Query-backs are answered by --database or by --snapshot, not by both.")


def _refuse_any(unfit: Mapping[str, object], why: str, hint: str | None = None) -> None:
    """Refuse the first given of these options."""
    for word, given in unfit.items():
        if given:
            raise UsageError(f"{word} {why}", hint=hint)


def _refuse_addresses(order: Order) -> None:
    """Refuse an address in the place of a folder: as a path it would name a folder here.

    Spark takes addresses; the local engine only object stores' ones, by copies.
    """
    places, target = order.places, order.target
    unfit: dict[str, object] = {"--kafka": target.kafka, "--to-database": target.to_database}
    if places.stored:
        _refuse_any(unfit, f"cannot be combined with an address: {places.stored}.", "Take a folder.")
    snapshot = order.source.snapshot if isinstance(order.source, FilesOrder) else None
    for name, path in {"--out": str(places.out), "--snapshot": snapshot}.items():
        if path is not None and name not in places.addresses and scheme_of(path):
            message = f"{name} {path} is an address of no file system."
            raise UsageError(message, hint="Name a folder.")
    for name, address in places.addresses.items():
        # An input has no option before it: it is its own name.
        what = address if name == address else f"{name} {address}"
        if order.engine.is_local:
            raise UsageError(
                f"{what} is an address, and the local engine reads and writes folders.",
                hint="Use --engine spark; all addresses may be s3://, gs:// or az:// here.",
            )
        unfit[f"convert {order.command}"] = order.command in ("gbase", "linter")
        why = f"cannot be combined with an address: {what}."
        _refuse_any(unfit, why, "Take folders that all nodes mount.")
        # Without a schema tables are described from the rows, and those lie where Spark is.
        source = order.source
        knows_none = isinstance(source, FilesOrder) and source.schema is None and source.database is None
        if target.to != "xds" and knows_none:
            message = f"{what} is an address, and --to {target.to} needs --schema FILE there."
            raise UsageError(message)


def _stream(asked: GBaseOrder | LinterOrder, config: Config) -> StreamInput:
    """Make a stream's settings: the configuration's, overridden by the command line."""
    places = tuple([path for pattern in asked.inputs for path in _files_at(pattern)])
    if isinstance(asked, LinterOrder):
        queue = config.source.table("linter")
        return StreamInput(places=places, settings=replace(queue, code_page=asked.code_page or queue.code_page))
    from eventlog.sources.gbase.files import refuse_dirty

    settings = config.source.table("gbase")
    dirty = asked.dirty or settings.dirty
    if dirty:
        refuse_dirty(map(Path, places))
    tables, keys = dict(settings.tables), dict(settings.keys)
    for words in asked.tables:
        tables.update(_pair("--tables", label) for label in _labels(words))
    for word in asked.keys:
        table, columns = _pair("--key", word)
        keys[table] = tuple(columns.split(","))
    encoding = asked.code_page or settings.encoding
    settings = replace(settings, encoding=encoding, dirty=dirty, tables=tables, keys=keys)
    return StreamInput(places=places, settings=settings)


def _files_at(pattern: str) -> list[str]:
    path = Path(pattern)
    if path.is_file():
        paths = [path]
    elif path.is_dir():
        paths = sorted(path.iterdir())
    else:
        paths = sorted(map(Path, glob(pattern)))  # noqa: PTH207 a Path takes no pattern from the root
    # In the order of their names, which is that of the stream.
    files = [str(file.absolute()) for file in paths if file.is_file() and not file.name.startswith(".")]
    if not files:
        raise DataError(f"There is no file at {pattern}; name one, a folder, or a pattern in quotes.")
    return files


def _labels(text: str) -> list[str]:
    """Split `111=shop.t1,112=shop.t2`; a comma in a table's name separates nothing."""
    return re.split(r",(?=\s*\w+=)", text)


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        example = "shop.t1=id" if option == "--key" else "111=shop.t1"
        raise UsageError(f"{option} {text} is not written as NAME=VALUE, such as {example}.")
    return name, value


def _log(asked: LogOrder, config: Config) -> LogInput:
    return LogInput(
        url=_wherever_asked(asked.url),
        log=asked.log or config.source.log,
        columns=config.source.columns,
        clock=config.source.clock,
        statuses=asked.statuses,
        mark=asked.mark,
        who=reads_originators(config),
    )


def _user_of(url: str) -> str | None:
    from eventlog.sql.connect import read_url

    return read_url(url).username


def _wherever_asked(url: str) -> str:
    """Make a database file's path in a URL absolute: processes in other folders connect."""
    from eventlog.sql.connect import read_url
    from eventlog.sql.dialect import dialect_of

    read = read_url(url)
    if not dialect_of(read).embedded or not read.database:
        return url
    # SQLite's `:memory:` and its own URIs are no paths.
    if read.database.startswith((":", "file:")):
        return url
    whole = read.set(database=str(Path(read.database).absolute()))
    return whole.render_as_string(hide_password=False)


def _files(asked: FilesOrder, config: Config, clock: str) -> FilesInput:
    places = tuple(str(Path(pattern).absolute()) for pattern in asked.inputs)
    # No longer than a value that a publisher takes.
    return FilesInput(places=places, clock=clock, line_limit=config.publisher.value_limit)


def _clock_of_files(asked: FilesOrder, config: Config) -> str:
    """Return the zone of the rows' times.

    If it is the database's, ask the database of the read-backs: files have none.
    """
    if config.source.clock != DATABASE:
        return config.source.clock
    if asked.database is None:
        message = 'source.clock is "database", and files have none that could be asked.'
        hint = "Name the zone, as Europe/Berlin, or an offset, as +09:00; or use --database URL."
        raise UsageError(message, hint=hint)
    from eventlog.sql.connect import connect

    engine = connect(asked.database)
    try:
        with engine.connect() as connection:
            return clock_of(connection, DATABASE)
    finally:
        engine.dispose()


def choose_read_back(order: Order, config: Config) -> DatabaseRows | SnapshotRows | None:
    """Choose what answers read-backs; a converted database answers itself, as for the publisher."""
    asked = order.source
    if isinstance(asked, LogOrder):
        return DatabaseRows(url=_wherever_asked(asked.url))
    if not isinstance(asked, FilesOrder):
        return None
    if asked.snapshot is not None:
        # An address is the same one from every folder.
        folder = Path(asked.snapshot)
        if "--snapshot" not in order.places.addresses:
            folder = folder.absolute()
        return SnapshotRows(folder=folder, line_limit=config.publisher.value_limit)
    if asked.database is not None:
        return DatabaseRows(url=_wherever_asked(asked.database))
    return None


def _catalog(
    order: Order,
    config: Config,
    source: LogInput | FilesInput | StreamInput,
    read_back: DatabaseRows | SnapshotRows | None,
) -> Catalog | None:
    asked, log = order.source, config.source.log
    if isinstance(asked, LogOrder):
        return _catalog_of_database(asked.url, asked.log or log, config)
    if asked.schema is not None:
        return catalog_from_json(content_of(asked.schema), origin=str(asked.schema))
    # Streams describe themselves.
    if not isinstance(asked, FilesOrder) or not isinstance(source, FilesInput):
        return None
    if isinstance(read_back, DatabaseRows):
        return _catalog_of_database(read_back.url, log, config)
    from eventlog.convert.inferred import catalog_of_files, read_archived_catalog

    if order.command == "batches":
        # Each batch would tell of the tables that it has rows of, and of no others.
        if order.target.to != "xds" and asked.snapshot is None:
            raise UsageError(f"--to {order.target.to} needs --schema FILE for the batches of a stream.")
        return None
    # Archives carry the tables with their images; nobody reads files that lie elsewhere.
    if not order.places.addresses and (archived := read_archived_catalog(source)) is not None:
        return archived
    if order.target.to == "xds" or asked.snapshot is not None:
        # XDS asks for no schema, and snapshots have one.
        return None
    # Rows in files name their keys and columns.
    return catalog_of_files(source)


def _catalog_of_database(url: str, log: str, config: Config) -> Catalog:
    from eventlog.config.build import catalog_of, with_definitions
    from eventlog.sql.connect import connect
    from eventlog.sql.names import read_log_name

    engine = connect(url)
    try:
        names = read_log_name(log)
        return with_definitions(engine, names, catalog_of(engine, names, config))
    finally:
        engine.dispose()


def _size(order: Order, config: Config) -> int:
    """Count the bytes of the input files."""
    files: Iterable[Path]
    if isinstance(order.source, FilesOrder):
        files = _files(order.source, config, "").paths
    else:
        files = [Path(name) for pattern in order.inputs for name in _files_at(pattern)]
    return sum(file.stat().st_size for file in files)


def _count_rows(source: LogInput) -> int:
    """Count the rows of a log to convert."""
    from sqlalchemy import text

    from eventlog.convert.reading import with_statuses
    from eventlog.sql.access import in_text, transaction
    from eventlog.sql.connect import connect
    from eventlog.sql.dialect import dialect_of, log_holes, statement
    from eventlog.sql.findlog import log_columns

    engine = connect(source.url)
    try:
        names, dialect = log_columns(engine, source.names, source.columns), dialect_of(engine)
        holes = log_holes(dialect, names)
        chosen = with_statuses(dialect, holes, source.statuses)
        count = statement(dialect, "chosen_count", **holes, chosen=chosen)
        with transaction(engine, f"The event log {names.table}") as connection:
            return int(connection.execute(text(in_text(count))).scalar_one())
    finally:
        engine.dispose()
