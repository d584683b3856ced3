"""What a package can bring to eventlog: values that it offers among its entry points, under the
names that people use.

The groups are those of `eventlog.core.registry`; `eventlog.background`, `eventlog.endpoints`,
`eventlog.gbase_framings`, `eventlog.steps` and `eventlog.streams` are ours alone as yet. What eventlog itself has of them comes
in by the same groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change
from eventlog.core.outputs import OutputKeys
from eventlog.core.schema import Catalog
from eventlog.core.seams import Format, Sink

EVERY_DOCUMENT = "*"
"""In `SinkPlugin.formats`: each format whose documents are bytes and nothing else."""


class Finding(Struct, frozen=True, kw_only=True):
    """A line of `eventlog check`: what is well; with `mend` a warning, and what to do. A failure is
    an error, raised.
    """

    message: str
    mend: str | None = None


class Need(Struct, frozen=True):
    """What cannot be done without a module of Python, as the beginning of a sentence: `An output
    with sink = "kafka"`.
    """

    what: str
    module: str


def _refuse_changeable(settings: type[Struct] | None) -> None:
    """Raise TypeError if settings are mutable: one value is the default of all."""
    if settings is not None and not settings.__struct_config__.frozen:
        raise TypeError(f"the settings {settings.__name__} must be frozen=True")


class SinkOrder(Struct, frozen=True, kw_only=True):
    """What a sink is built for. `output` are its settings."""

    output: Any
    format: Format


class SinkPlugin(Struct, frozen=True, kw_only=True):
    """A sink: what `sink = "NAME"` means in a configuration, where NAME is the name of the entry
    point.

    `settings` are its keys in `[[output]]`. `place` says where documents go, as `eventlog outputs`
    calls an output that has no name; it stays the same as long as they go there. `formats` are the
    names of those it takes.
    """

    settings: type[OutputKeys]
    build: Callable[[SinkOrder], Sink]
    place: Callable[[Any], str]
    formats: tuple[str, ...] = (EVERY_DOCUMENT,)
    check: Callable[[Any], Iterable[Finding]] | None = None
    """What `eventlog check` says of an output; nothing is left behind at the target."""
    needs: Callable[[Any], Iterable[Need]] | None = None
    """The modules that an output cannot do without."""
    answers: bool = False
    """Whether what `commit` gives back is a receiver's word on each change, which may refuse it."""
    takes_values: bool = False
    """Whether it takes what a format has behind the bytes of a document, which may then lack them.
    """
    sorts_ids: bool = False
    """Whether it knows its last document by the greatest id, so that ids must rise."""


class FormatOrder(Struct, frozen=True, kw_only=True):
    """What a format is built for: its own table of the output, the output, its sink, and
    `[publisher]` of the configuration. `database` is the kind of the database whose tables a log
    tells of, such as postgresql, and `home` its name; empty where a stream describes the tables.
    """

    settings: Any
    output: Any
    sink: SinkPlugin
    publisher: Any
    schema: str | None = None
    database: str = ""
    home: str = ""


class FormatPlugin(Struct, frozen=True, kw_only=True):
    """A format: what `format = "NAME"` means. `settings` are the keys of its own table,
    `[output.NAME]` with _ for -.

    `content` says what its documents are: bytes that every sink can take, or what only sinks that
    name it can.
    """

    build: Callable[[FormatOrder], Format]
    settings: type[Struct] | None = None
    content: Literal["documents", "other"] = "documents"
    ignored: Callable[[Any], Iterable[tuple[str, str]]] | None = None
    """Keys of its table that do nothing as the others are set, each with the reason, which begins
    behind an output's name.
    """
    counts: Callable[[Any], bool] = lambda _settings: False
    """Whether it counts what it writes of a transaction, as its table says: then the log is asked
    where each one ends."""
    show: Callable[[Any], str] | None = None
    """What `eventlog explain` shows of a change as it was written, where outputs of this format are sent something
    that people read."""
    folder: Callable[[SinkOrder], Sink] | None = None
    """What writes it to the folder of `sink = "files"`, where that is not a file for each document.
    """

    def __post_init__(self) -> None:
        _refuse_changeable(self.settings)


class SourceOrder(Struct, frozen=True, kw_only=True):
    """What a source is built for. `settings` are its own table; `url` is `source.url`; `tables` is
    what the file describes that `source.schema_file` names; `reader`, `captured` and `schema` are
    `source.reader`, `.tables` and `.schema`, for what reads tables. `marks` are its open marks.
    `report` takes sentences about what is odd. `run` is the publisher's start: a text that no other
    start has. `pulse` is to be called now and then while the source works and gives nothing.
    """

    settings: Any
    url: str
    tables: Catalog | None
    marks: Any
    report: Callable[[str], None]
    reader: str = ""
    captured: tuple[str, ...] = ()
    schema: str | None = None
    run: str = ""
    pulse: Callable[[], None] = lambda: None


class SourcePlugin(Struct, frozen=True, kw_only=True):
    """A source: what `kind = "NAME"` means in `[source]`. `settings` are the keys of its own table,
    `[source.NAME]`.

    `build` makes the reader of the stream. `marks` says in which file its position is kept, or in
    which database, by its URL, where the names of tables begin with `prefix`; `title` is what it is
    called.
    """

    settings: type[Struct]
    build: Callable[[SourceOrder], Any]
    marks: Callable[[Any], str]
    title: str
    prefix: str = "eventlog_stream"
    address: Callable[[Any], str] = lambda _: ""
    """Where it reads, for messages, and without secrets; asked where there is no `source.url`."""
    check: Callable[[SourceOrder], Iterable[Finding]] | None = None
    """What `eventlog check` says of it; nothing is changed, and the order has no `marks`."""

    def __post_init__(self) -> None:
        _refuse_changeable(self.settings)


class StepNeeds(NamedTuple):
    """What the steps of outputs need beside changes: of their objects, and of rows of other tables.

    None where they need nothing. `faults` are the outputs whose steps name what there is not.
    """

    needs: Callable[[Change], frozenset[str]] | None = None
    looks: Callable[[Change], Mapping[str, Any]] | None = None
    faults: Mapping[str, ConfigError] = {}  # a tuple's, and never written to

    def check(self) -> StepNeeds:
        """Return self; raise ConfigError where an output is at fault."""
        for fault in self.faults.values():
            raise fault
        return self


class StepsPlugin(Struct, frozen=True, kw_only=True):
    """What reads and applies the steps of outputs: a `[[policy]]` is of the type `policy`, which is
    called by its `name`, and one of `steps` is of any of these types.
    """

    policy: type[Struct]
    steps: tuple[type[Struct], ...]
    refuse_unknown: Callable[[str, str, str, Sequence[Mapping[str, Any]]], None]
    """ConfigError for a step that there is not: in which file, its text, under which heading, and
    the tables that have the steps."""
    refuse: Callable[[Sequence[OutputKeys], Sequence[Any]], None]
    """ConfigError where outputs name policies that there are not, or two have one name."""
    of_output: Callable[[OutputKeys, Sequence[Any]], tuple[Any, ...]]
    """The steps of an output: those of its policies, then its own."""
    needs: Callable[[Sequence[tuple[str, tuple[Any, ...]]], Catalog], StepNeeds]
    """Gets the steps by their outputs' names."""
    format: Callable[[Format, Any], Format]
    """The format that stands behind the steps."""


class StreamsPlugin(Struct, frozen=True, kw_only=True):
    """What publishes a change stream. `post` gets the configuration, the publisher's health, and
    its journal of what happened. `catalog` gets an engine and the names of a log: the tables as the
    stream has described them last.
    """

    post: Callable[..., Any]
    catalog: Callable[[Any, Any], Catalog]


class TablePlugin(Struct, frozen=True, kw_only=True):
    """A table of the configuration: what `[NAME]` holds, where NAME is the name of the entry point.
    `config.table("NAME")` gives it, with its defaults where nobody wrote one.

    `check` gets the whole configuration; ConfigError where the table does not go with the rest.
    """

    settings: type[Struct]
    check: Callable[[Any], None] = lambda _config: None

    def __post_init__(self) -> None:
        _refuse_changeable(self.settings)


class CheckPlugin(Struct, frozen=True, kw_only=True):
    """Points of `eventlog check` that belong to no output, under the name of the entry point; they
    get the configuration.
    """

    findings: Callable[[Any], Iterable[Finding]]


class PageCell(Struct, frozen=True, kw_only=True):
    """A cell of the status page: a text, which may be a link or have the colour of a state.

    `to` is a path of the page or an address that begins with https://; another one is shown without
    a link.
    """

    text: str
    to: str = ""
    look: Literal["", "good", "warn", "bad"] = ""


class PageTable(Struct, frozen=True, kw_only=True):
    """A table of the status page; `empty` is said where it has no rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    empty: str = "Nothing."


class PageOrder(Struct, frozen=True, kw_only=True):
    """What a part of the page is made from: the configuration, an engine of SQLAlchemy for the
    log's database, whose statements end in time, and the states of the log's triggers.
    """

    config: Any
    engine: Any
    triggers: Sequence[Any]


class PagePlugin(Struct, frozen=True, kw_only=True):
    """A part of the status page's first page, under its title. It is made where rows are counted,
    every half minute at most and only while somebody looks, and never while a page is drawn. Where
    `part` makes none, the page is without it.
    """

    title: str
    part: Callable[[PageOrder], PageTable | None]


class BackgroundOrder(Struct, frozen=True, kw_only=True):
    """What work beside publishing is made from: the configuration, the names of the log, and the
    publisher's journal and vitals.

    `mark` makes a mark of the log in a transaction of the caller's; OccupiedError where this
    publisher lost the lock.
    """

    config: Any
    names: Any
    journal: Any
    vitals: Any
    mark: Callable[[Any, str, str], None]


class BackgroundWork(Protocol):
    """Work in a thread of its own. It fails by itself: no error of it may end the publisher."""

    def run(self) -> None:
        """Works until it is stopped."""

    def stop(self) -> None:
        """Ends the work as soon as it can be; called from another thread."""


class BackgroundPlugin(Struct, frozen=True, kw_only=True):
    """What the publisher that has a log's lock does beside publishing, where that is `wanted`."""

    wanted: Callable[[Any], bool]
    build: Callable[[BackgroundOrder], BackgroundWork]


class EndpointOrder(Struct, frozen=True, kw_only=True):
    """What serves the address of `eventlog run --http` is made from: a running publisher's vitals
    and journal.
    """

    address: str
    config: Any
    vitals: Any
    journal: Any


class ServedEndpoint(Protocol):
    """What is served at an address while the publisher runs."""

    port: int

    def adopt(self, config: Any) -> None:
        """Goes on with another configuration."""

    def close(self) -> None:
        """Ends it, and frees the address."""


class EndpointPlugin(Struct, frozen=True, kw_only=True):
    """What serves /metrics, /health, /ready and more; None where it cannot, as things are."""

    open: Callable[[EndpointOrder], ServedEndpoint | None]
