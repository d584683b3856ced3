"""The steps of policies as they are written: values only, which a configuration is read into and
processes hand on.

A step says with `do` what it does and with `classes` for which tables; without, for all. Names may
have `*` in them. `attributes` are those that changes have at this step: after a rename, the new
names.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Literal, get_args
from zoneinfo import ZoneInfo

import msgspec

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import PlaceKind
from eventlog.core.places import NoPlace, PlaceTemplate, place
from eventlog.core.secrets import SecretSettings

OnUnfit = Literal["refuse", "null", "keep"]
"""What becomes of a value that is none of what a step is for: the change is refused, it becomes
NULL, or stays.
"""

MOST_DIGITS = 30
DIRECTIVES = ("%Y", "%y", "%m", "%d", "%H", "%I", "%M", "%S", "%f", "%j", "%p", "%z", "%%")
"""What a form of times may have: what is the same on every machine."""

_directive = re.compile(r"%.?", re.DOTALL)

LEAST_SECRET_CHARACTERS = 16
"""A shorter secret is found by trying."""


class _Step(SecretSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    """What all steps have."""

    classes: tuple[str, ...] = ()


class OnlyTables(_Step, frozen=True, kw_only=True, tag="only"):
    """Leaves out all tables but these."""

    def __post_init__(self) -> None:
        needs(self, "classes")


class WithoutTables(_Step, frozen=True, kw_only=True, tag="without"):
    """Leaves these tables out."""

    def __post_init__(self) -> None:
        needs(self, "classes")


class Keep(_Step, frozen=True, kw_only=True, tag="keep"):
    """Leaves out all attributes but these, and the key."""

    attributes: tuple[str, ...]


class Drop(_Step, frozen=True, kw_only=True, tag="drop"):
    """Leaves these attributes out."""

    attributes: tuple[str, ...]


class Rename(_Step, frozen=True, kw_only=True, tag="rename"):
    """Calls attributes and the class otherwise. What an association says does not change: it is who
    the object is.
    """

    attributes: dict[str, str] = msgspec.field(default_factory=dict)
    class_name: str = ""

    def __post_init__(self) -> None:
        if not self.attributes and not self.class_name:
            raise ConfigError("A step with do = 'rename' renames nothing; it takes `attributes` or `class_name`.")
        names = [*self.attributes.values()]
        # A name of nothing counts as one that is given twice.
        doubled = [name for name in names if names.count(name) > 1 or not name]
        if doubled:
            problem = (
                f"A step with do = 'rename' calls an attribute {doubled[0]!r}, which is no name or that of another one."
            )
            raise ConfigError(problem, hint="Give each attribute a name of its own.")


class Redact(_Step, frozen=True, kw_only=True, tag="redact"):
    """Puts the same text in the place of every value that is not NULL."""

    attributes: tuple[str, ...]
    value: str = "***"


class _Secret(_Step, frozen=True, kw_only=True):
    attributes: tuple[str, ...]
    secret: str

    def __post_init__(self) -> None:
        if len(self.secret) < LEAST_SECRET_CHARACTERS:
            problem = f"The secret of a step has fewer than {LEAST_SECRET_CHARACTERS} characters."
            hint = "Let a program make it, and take it from the environment: ${NAME}."
            raise ConfigError(problem, hint=hint)


class Hash(_Secret, frozen=True, kw_only=True, tag="hash"):
    """Puts the HMAC (SHA-256) of a value in its place; equal values stay equal. It may take key
    columns too.
    """


class Encrypt(_Secret, frozen=True, kw_only=True, tag="encrypt"):
    """Puts a value in its place that only who has the secret can read (AES-256-GCM)."""


class Constant(_Step, frozen=True, kw_only=True, tag="constant"):
    """Adds an attribute that has the same value in every object."""

    attribute: str
    value: str


class Text(_Step, frozen=True, kw_only=True, tag="text"):
    """Writes text in upper or lower case, or without blanks at its ends."""

    attributes: tuple[str, ...]
    to: Literal["upper", "lower", "trim"]


class Join(_Step, frozen=True, kw_only=True, tag="join"):
    """Adds an attribute of the values of others, one after the other; NULLs and what is not known
    are left out.
    """

    attribute: str
    of: tuple[str, ...]
    separator: str = " "

    def __post_init__(self) -> None:
        needs(self, "of")


class Map(_Step, frozen=True, kw_only=True, tag="map"):
    """Puts other values in the places of values; one that is not listed stays, or becomes
    `otherwise`.
    """

    attributes: tuple[str, ...]
    values: dict[str, str]
    otherwise: str | None = None


class Compute(_Step, frozen=True, kw_only=True, tag="compute"):
    """Adds an attribute, or gives it another value: that of an expression in CEL."""

    attribute: str
    expression: str
    type: str = "varchar"
    on_error: Literal["refuse", "null"] = "refuse"


class Lookup(_Step, frozen=True, kw_only=True, tag="lookup"):
    """Adds an attribute: what `take` is in that row of another table whose key is the value of
    `of`; NULL where there is none.
    """

    attribute: str
    of: str
    table: str
    take: str


class Call(_Step, frozen=True, kw_only=True, tag="call"):
    """Adds an attribute, or gives it another value: what a Python function makes of the values of
    others.

    `function` is its name among the entry points `eventlog.policies`. It gets a dict of the
    attributes `of` that are known and answers with a text, a number, a truth value, bytes or None.
    """

    attribute: str
    function: str
    of: tuple[str, ...]
    type: str = "varchar"
    on_error: Literal["refuse", "null"] = "refuse"

    def __post_init__(self) -> None:
        needs(self, "of")


class Date(_Step, frozen=True, kw_only=True, tag="date"):
    """Writes times in another form, such as %d.%m.%Y, and in the time of a zone. A time without a
    zone is in UTC.
    """

    attributes: tuple[str, ...]
    form: str
    zone: str = "UTC"
    on_error: OnUnfit = "refuse"

    def __post_init__(self) -> None:
        bad = [directive for directive in _directive.findall(self.form) if directive not in DIRECTIVES]
        if bad or not self.form:
            problem = f"The `form` of a step with do = 'date' is {self.form!r}"
            hint = "For example %Y-%m-%dT%H:%M:%SZ."
            raise ConfigError(f"{problem}; it takes {', '.join(DIRECTIVES)}.", hint=hint)
        self.clock()  # so that a zone that there is not is refused when the configuration is read

    def clock(self) -> dt.tzinfo:
        """Return the zone; raise ConfigError where there is no such zone."""
        try:
            return ZoneInfo(self.zone)
        # zoneinfo raises all of these: for a path, for a folder, and for what is not there.
        except (ValueError, OSError, LookupError):
            problem = f"The `zone` of a step with do = 'date' is {self.zone!r}, which is no zone"
            raise ConfigError(f"{problem}; write it as Europe/Berlin.") from None


class Number(_Step, frozen=True, kw_only=True, tag="number"):
    """Writes numbers with so many decimals, rounded half up, and with marks of one's own."""

    attributes: tuple[str, ...]
    decimals: int | None = None
    decimal_mark: str = "."
    group_mark: str = ""
    on_error: OnUnfit = "refuse"

    def __post_init__(self) -> None:
        if self.decimals is not None and not 0 <= self.decimals <= MOST_DIGITS:
            raise ConfigError(
                f"`decimals` of a step with do = 'number' is {self.decimals}; it must be between 0 and {MOST_DIGITS}."
            )
        if not self.decimal_mark or self.decimal_mark == self.group_mark:
            raise ConfigError("A step with do = 'number' needs a `decimal_mark` that is not its `group_mark`.")


class Where(_Step, frozen=True, kw_only=True, tag="where"):
    """Leaves out changes of objects for which a condition in CEL is not true."""

    condition: str
    on_error: Literal["refuse", "tell", "leave-out"] = "refuse"
    when_leaving: Literal["nothing", "delete"] = "nothing"


class Route(_Step, frozen=True, kw_only=True, tag="route"):
    """Sends changes to a folder, address, topic or table of their own: a template of {schema},
    {table}, {class} and {new.ATTRIBUTE}.

    `otherwise` is where changes go for which that gives no valid place; without it they are
    refused.
    """

    to: str
    otherwise: str = ""

    def __post_init__(self) -> None:
        self.template()
        if not self.to:
            raise ConfigError("A step with do = 'route' has an empty `to`; name a place, or write a template.")

    def template(self) -> PlaceTemplate:
        fields = ("schema", "table", "class")
        return PlaceTemplate(self.to, "The `to` of a step with do = 'route'", fields, "new.")


class PlacedRoute(Route, frozen=True, kw_only=True, tag="route"):
    """The same for an output of a known kind; `taken` are topics that have another use there."""

    kind: PlaceKind
    taken: tuple[str, ...] = ()


class Unmapped(_Step, frozen=True, kw_only=True, tag="unmapped"):
    """Leaves out each attribute that no step and no mapping names, or says that there is one (`stop`). An output
    has it behind its steps by its key `unmapped`; `mapped` are the tables of its mapping, with their columns.
    """

    mode: Literal["stop", "drop"]
    mapped: tuple[tuple[str, tuple[str, ...]], ...] | None = None


Step = (
    OnlyTables
    | WithoutTables
    | Keep
    | Drop
    | Rename
    | Redact
    | Hash
    | Encrypt
    | Constant
    | Text
    | Join
    | Map
    | Compute
    | Where
    | Lookup
    | Call
    | Date
    | Number
    | Route
)
Steps = tuple[Step, ...]
STEPS = get_args(Step)
"""All kinds of steps."""


def needs(step: _Step, key: str) -> None:
    """Raise ConfigError if a list the step needs is empty."""
    if not getattr(step, key):
        raise ConfigError(f"A step with do = {step.__struct_config__.tag!r} has no `{key}`; name at least one.")


def place_steps(steps: Steps, kind: PlaceKind | None, where: str, taken: tuple[str, ...] = ()) -> Steps:
    """Prepare the steps of an output with places of this kind; raise ConfigError where it has but one, or
    a place is impossible.
    """
    return tuple([_place_route(step, kind, where, taken) if isinstance(step, Route) else step for step in steps])


def _place_route(step: Route, kind: PlaceKind | None, where: str, taken: tuple[str, ...]) -> PlacedRoute:
    if kind is None:
        raise ConfigError(
            f"A step with do = 'route' cannot be combined with {where}, which is one place; leave it out."
        )
    template = step.template()
    try:
        # A plain value in each field: what the template itself has must be possible.
        place(template, dict.fromkeys(template.fields, "x"), kind, taken)
    except NoPlace as error:
        problem = f"The `to` of a step with do = 'route' can give no {kind}: {error}."
        raise ConfigError(problem) from None
    otherwise = step.otherwise
    try:
        if otherwise:
            # `otherwise` is a place and no template; its braces are braces.
            literal = otherwise.replace("{", "{{").replace("}", "}}")
            otherwise = place(PlaceTemplate(literal, "otherwise"), {}, kind, taken)
    except NoPlace as error:
        raise ConfigError(f"The `otherwise` of a step with do = 'route' is no {kind}: {error}.") from None
    return PlacedRoute(classes=step.classes, to=step.to, otherwise=otherwise, kind=kind, taken=taken)
