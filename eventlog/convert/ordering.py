"""From the words of `eventlog convert` to the conversion that they order, or to what does not go
together in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from glob import glob
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from eventlog.cli.site import DEFAULT_FILE, content_of
from eventlog.config.build import options_of
from eventlog.config.settings import Config, load
from eventlog.convert.settings import (
    Conversion,
    DatabaseRows,
    FilesInput,
    LogInput,
    SnapshotRows,
    StreamInput,
)
from eventlog.convert.targets import (
    ConversionOrder,
    refuse_target,
    refuse_unread_policies,
    steps_of_order,
    target_of,
    transactions_of,
)
from eventlog.core.errors import DataError, UsageError
from eventlog.core.packages import is_there, require
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog
from eventlog.core.schema_file import catalog_from_json
from eventlog.core.secrets import visible
from eventlog.policies.plugin import needs_of
from eventlog.sinks.store.address import MODULE, SCHEMES, refuse_unknown
from eventlog.sql.clocks import DATABASE, UTC, clock_of

SPARK_BYTES = 256_000_000
"""Bytes of input from which on Spark is worth its start."""

SPARK_ROWS = 5_000_000
"""Rows of a database from which on it is."""

FILE_SYSTEMS = frozenset(
    {"abfs", "abfss", "file", "gs", "hdfs", "oss", "s3", "s3a", "s3n", "viewfs", "wasb", "wasbs", "webhdfs"}
)
"""Beginnings of addresses of files; those of databases are none of these."""

# Hadoop writes file:/tmp with one slash; a single letter would be a drive of Windows.
_address = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/").match


def _scheme(word: str) -> str:
    """How an address begins; nothing for a path."""
    address = _address(word)
    if address is None:
        return ""
    return address[1].lower()


def is_foreign(word: str) -> bool:
    """Whether an input is the URL of something else than files, such as a database's."""
    return "://" in word and _scheme(word) not in FILE_SYSTEMS


def order_of(source: str, given: Mapping[str, Any]) -> ConversionOrder:
    """Make one value of the words of a command, which reads this kind of source; addresses of file
    systems stay as they were written.
    """
    given = {**given, "source": source}
    snapshot = given.get("snapshot")
    words = {"--out": given["out"], "--snapshot": snapshot}
    words |= {word: word for word in given["inputs"]}
    addresses = {name: word for name, word in words.items() if word is not None and _scheme(word) in FILE_SYSTEMS}
    stored, fetched = "", dict[str, str]()
    if _is_stored(given, addresses):
        from eventlog.convert.fetching import folder_of_copies
        from eventlog.convert.stored import folder_for

        for name, address in addresses.items():
            refuse_unknown("An input" if name == address else name, address)
        require("An address, by the local engine,", MODULE)
        # With and without a slash at the end it is the same place, made in the same folder.
        stored = addresses.pop("--out", "").rstrip("/")
        copies = {name: folder_of_copies(address) for name, address in addresses.items()}
        fetched = {copies[name]: address for name, address in addresses.items()}
        words |= {"--out": str(folder_for(stored)) if stored else given["out"], **copies}
        addresses = {}
    inputs = tuple([words[word] for word in given["inputs"]])
    snapshot = words["--snapshot"]
    paths = {"out": Path(words["--out"]), "snapshot": None if snapshot is None else Path(snapshot)}
    return ConversionOrder(**{**given, **paths, "inputs": inputs}, addresses=addresses, stored=stored, fetched=fetched)


def _is_stored(given: Mapping[str, Any], addresses: Mapping[str, str]) -> bool:
    """Whether the local engine is to read and write object stores: where it was asked for, where
    Spark cannot do it, or where there is none.
    """
    # Spark alone follows a log into an address.
    if not addresses or given.get("follow"):
        return False
    if any(_scheme(address) not in SCHEMES for address in addresses.values()):
        return False
    if given["engine"] != "auto":
        return str(given["engine"]) == "local"
    if given["jobs"] is not None or given["resume"] or given["source"] != "log":
        return True
    return not (given["master"] or given["conf"] or is_there("pyspark"))


def conversion_of(order: ConversionOrder) -> Conversion:
    """The conversion; UsageError or ConfigError says what does not go together."""
    _refuse(order)
    refuse_unread_policies(order, DEFAULT_FILE)
    config = load(order.config)
    if order.fetched:
        from eventlog.convert.fetching import fetch

        # Not before all words are known to go together.
        fetch(order.fetched)
    source: LogInput | FilesInput | StreamInput
    if order.source != "log":
        source = _stream(order, config)
    elif order.from_database:
        source = _log(order, config)
    else:
        source = _files(order, _clock_of_files(order, config))
    read_back = _read_back(order)
    catalog = _catalog(order, config, read_back)
    steps = steps_of_order(order, config)
    # A stream has whole images, so a policy finds in them what it looks at.
    if steps and catalog is not None and order.source == "log":
        output = order.output or f"of the format {order.target}"
        needs_of([(output, steps)], catalog)
    return Conversion(
        input=source,
        destination=order.out,
        catalog=catalog,
        options=_options(order, config),
        format=target_of(order, config),
        part_events=order.part_events,
        read_back=read_back,
        overwrite=order.overwrite,
        steps=steps,
        transactions=transactions_of(order, config),
    )


def seconds_between_looks(order: ConversionOrder) -> int:
    """How long a log that is followed is left alone: as long as the publisher leaves it."""
    return load(order.config).publisher.polling_interval


def worth_spark(order: ConversionOrder) -> bool:
    """Whether Spark should do it where it can: the options are for it, or the input is worth its
    start.
    """
    if order.resume or order.jobs is not None:
        return False
    if order.to_database is not None or order.to_lake is not None:
        return False
    if order.master or order.conf:
        return True
    # One process sends in the order of positions throughout, not by keys alone.
    if order.kafka is not None:
        return False
    if order.from_database:
        return _rows(order) >= SPARK_ROWS
    return _size(order) >= SPARK_BYTES


def _refuse(order: ConversionOrder) -> None:
    if str(order.out) == "-":
        raise UsageError("--out - is no folder; name one for the output.")
    _refuse_following(order)
    _refuse_addresses(order)
    refuse_target(order)
    for word in () if order.from_database else filter(is_foreign, order.inputs):
        hint = "The log of a database is converted by `eventlog convert database URL`."
        if order.source != "log":
            hint = "The publisher reads what is alive (source.kind)."
        raise UsageError(f"INPUT {visible(word)} is no address of a file system.", hint=hint)
    if order.database is not None and order.snapshot is not None:
        raise UsageError("Query-backs are answered by --database or by --snapshot, not by both.")
    if order.resume and order.engine == "spark":
        raise UsageError("--resume needs the local engine: use --engine local.")


def _refuse_any(unfit: Mapping[str, object], why: str, hint: str | None = None) -> None:
    """Refuses the first of these options that was given."""
    for word, given in unfit.items():
        if given:
            raise UsageError(f"{word} {why}", hint=hint)


def _refuse_addresses(order: ConversionOrder) -> None:
    """Addresses are for Spark, but for those of object stores, which the local engine copies.

    One in the place of a path would be taken for a folder of that name, here.
    """
    unfit: dict[str, object] = {
        "--kafka": order.kafka,
        "--to-database": order.to_database,
        "--to-lake": order.to_lake,
    }
    if order.stored:
        _refuse_any(unfit, f"cannot be combined with an address: {order.stored}.", "Take a folder.")
    for name, path in {"--out": order.out, "--snapshot": order.snapshot}.items():
        if path is not None and name not in order.addresses and _scheme(str(path)):
            message = f"{name} {path} is an address of no file system."
            raise UsageError(message, hint="Name a folder.")
    for name, address in order.addresses.items():
        # An input has no option before it: it is its own name.
        what = address if name == address else f"{name} {address}"
        if order.engine == "local" or order.jobs is not None or order.resume:
            raise UsageError(
                f"{what} is an address, and the local engine reads and writes folders.",
                hint="Use --engine spark; all addresses may be s3://, gs:// or az:// here.",
            )
        unfit[f"convert {order.source}"] = order.source != "log"
        why = f"cannot be combined with an address: {what}."
        _refuse_any(unfit, why, "Take folders that all nodes mount.")
        # Without a schema tables are described from the rows, and those lie where Spark is.
        known = order.schema is not None or order.database is not None or order.from_database
        if order.target != "xds" and not known:
            message = f"{what} is an address, and --to {order.target} needs --schema FILE there."
            raise UsageError(message)


def _refuse_following(order: ConversionOrder) -> None:
    """A log is followed by Spark, each row once whatever its status, into a place that is gone on
    with.
    """
    if not order.follow:
        if order.until_empty:
            raise UsageError("--until-empty needs --follow.")
        return
    unfit = {
        "--engine local": order.engine == "local",
        "--jobs": order.jobs is not None,
        "--status": order.statuses,
        "--mark": order.mark,
        "--resume": order.resume,
        "--overwrite": order.overwrite,
        "--snapshot": order.snapshot,
        "--to-database": order.to_database,
        "--to-lake": order.to_lake,
    }
    hint = "Leave it out; `eventlog convert database --help` says more."
    _refuse_any(unfit, "cannot be combined with --follow.", hint)


def _stream(order: ConversionOrder, config: Config) -> StreamInput:
    """The files of a stream, and how they are read: as the configuration says, and the command line
    over it.
    """
    from eventlog.sources.gbase.files import refuse_dirty

    places = [path for pattern in order.inputs for path in _files_at(pattern)]
    if order.source == "linter":
        queue = config.source.table("linter")
        queue = replace(queue, code_page=order.code_page or queue.code_page)
        return StreamInput(places=tuple(places), settings=queue)
    settings = config.source.table("gbase")
    dirty = order.dirty or settings.dirty
    if dirty:
        refuse_dirty(map(Path, places))
    encoding = order.code_page or settings.encoding
    tables, keys = dict(settings.tables), dict(settings.keys)
    for words in order.tables:
        tables.update(_pair("--tables", label) for label in _labels(words))
    for word in order.keys:
        table, columns = _pair("--key", word)
        keys[table] = tuple(columns.split(","))
    settings = replace(settings, encoding=encoding, dirty=dirty, tables=tables, keys=keys)
    return StreamInput(places=tuple(places), settings=settings)


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
    """The parts of `111=shop.t1,112=shop.t2`; a comma in a table's name is none between labels."""
    return re.split(r",(?=\s*\w+=)", text)


def _pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value:
        example = "shop.t1=id" if option == "--key" else "111=shop.t1"
        raise UsageError(f"{option} {text} is not written as NAME=VALUE, such as {example}.")
    return name, value


def _log(order: ConversionOrder, config: Config) -> LogInput:
    return LogInput(
        url=_wherever_asked(order.inputs[0]),
        log=order.log or config.source.log,
        columns=config.source.columns,
        clock=config.source.clock,
        statuses=order.statuses or "N",
        mark=order.mark,
    )


def _wherever_asked(url: str) -> str:
    """The URL, with the whole path of a database's file, which is asked for by processes with other
    folders too.
    """
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


def _files(order: ConversionOrder, clock: str = UTC) -> FilesInput:
    places = tuple(str(Path(pattern).absolute()) for pattern in order.inputs)
    return FilesInput(places=places, statuses=order.statuses or "", clock=clock, line_limit=order.line_limit)


def _clock_of_files(order: ConversionOrder, config: Config) -> str:
    """Whose time is in rows of files; the database that answers read-backs is asked where one is
    named, for a file has none.
    """
    if config.source.clock != DATABASE:
        return config.source.clock
    if order.database is None:
        message = 'source.clock is "database", and files have none that could be asked.'
        hint = "Name the zone, as Europe/Berlin, or an offset, as +09:00; or use --database URL."
        raise UsageError(message, hint=hint)
    from eventlog.sql.connect import connect

    engine = connect(order.database)
    try:
        with engine.connect() as connection:
            return clock_of(connection, DATABASE)
    finally:
        engine.dispose()


def _read_back(order: ConversionOrder) -> DatabaseRows | SnapshotRows | None:
    """A database that is converted answers for itself, as it does for the publisher."""
    if order.snapshot is not None:
        # An address is the same one from every folder.
        is_address = "--snapshot" in order.addresses
        folder = order.snapshot if is_address else order.snapshot.absolute()
        return SnapshotRows(folder=folder, line_limit=order.line_limit)
    if order.database is not None or order.from_database:
        return DatabaseRows(url=_wherever_asked(order.database or order.inputs[0]))
    return None


def _catalog(
    order: ConversionOrder,
    config: Config,
    read_back: DatabaseRows | SnapshotRows | None,
) -> Catalog | None:
    if order.schema is not None:
        return catalog_from_json(content_of(order.schema), origin=str(order.schema))
    if isinstance(read_back, DatabaseRows):
        url = read_back.url
    elif order.from_database:
        url = order.inputs[0]
    elif order.source == "log" and (archived := _archived(order)) is not None:
        return archived
    elif order.target == "xds" or order.source != "log" or order.snapshot is not None:
        # XDS asks for no schema, streams describe themselves, and snapshots have one.
        return None
    else:
        # Rows in files name their keys and columns.
        from eventlog.convert.inferred import catalog_of_files

        return catalog_of_files(_files(order))
    from eventlog.config.build import catalog_of, with_definitions
    from eventlog.sql.connect import connect
    from eventlog.sql.names import read_log_name

    engine = connect(url)
    try:
        names = read_log_name(order.log or config.source.log)
        return with_definitions(engine, names, catalog_of(engine, names, config))
    finally:
        engine.dispose()


def _archived(order: ConversionOrder) -> Catalog | None:
    """The tables that archives carry with their images; nobody reads files that lie elsewhere."""
    if order.addresses:
        return None
    from eventlog.convert.inferred import archived_catalog

    return archived_catalog(_files(order))


def _options(order: ConversionOrder, config: Config) -> Options:
    """The rules' options; a database's own user is the one it is read as, unless another is
    named.
    """
    from eventlog.sql.connect import read_url

    username = None
    if order.from_database:
        username = read_url(order.inputs[0]).username
    options = options_of(config, username)
    return replace(options, coalesce=order.coalesce or options.coalesce)


def _size(order: ConversionOrder) -> int:
    from eventlog.convert.inputs import input_files

    files: Iterable[Path]
    if order.source == "log":
        files = input_files(_files(order))
    else:
        files = (Path(name) for pattern in order.inputs for name in _files_at(pattern))
    return sum(file.stat().st_size for file in files)


def _rows(order: ConversionOrder) -> int:
    """How many rows of a log are to be converted."""
    # Before the database is asked anything.
    _refuse(order)
    from sqlalchemy import text

    from eventlog.convert.reading import with_statuses
    from eventlog.sql.access import in_text, transaction
    from eventlog.sql.connect import connect
    from eventlog.sql.dialect import dialect_of, log_holes, statement
    from eventlog.sql.findlog import log_columns

    source = _log(order, load(order.config))
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
