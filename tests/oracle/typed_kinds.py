"""Kinds of expressions in Oracle's SQL, for the typed check: what is compared, sorted, counted and handed to functions."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sqlglot import exp

from tests.oracle.typed_schema import FUNCTIONS, PSEUDO, Table, kind_of

UNSORTED: Final = frozenset({"lob", "long"})


class Parameter(str):
    """The kind of a parameter that nobody has used yet: its name."""

    __slots__ = ()


def name_of(tree: Any, part: str = "this") -> str:
    """Write a name as Oracle keeps it: in capitals unless it is quoted."""
    named = tree.args.get(part) if tree is not None else None
    while named is not None and not isinstance(named, exp.Identifier):
        named = named.args.get("this")
    return "" if named is None else named.name if named.quoted else named.name.upper()


class Scope:
    """What names mean in a query: its tables by their aliases, and the query around it."""

    def __init__(self, outer: Scope | None = None) -> None:
        self.outer = outer
        self.sources: dict[str, Table] = {}

    def find(self, table: str, column: str) -> str | None:
        wanted = [self.sources.get(table)] if table else list(self.sources.values())
        kinds = [source[column] for source in wanted if source is not None and column in source]
        if kinds:
            return kinds[0]
        return self.outer.find(table, column) if self.outer else None


class Kinds:
    """Checks expressions; `faults` says what is wrong, `used` as what each parameter is used."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        variables: Mapping[str, str] | None = None,
        aliases: Mapping[str, Table] | None = None,
    ) -> None:
        self.tables = tables
        self.variables = dict(variables or {})
        self.aliases = dict(aliases or {})
        self.faults: list[str] = []
        self.used: dict[str, set[str]] = defaultdict(set)

    @abstractmethod
    def _query(self, tree: Any, outer: Scope) -> dict[str, str]:
        """Check a query; return its columns with their kinds."""

    def _sortable(self, where: str, kinds: Iterable[str]) -> None:
        for kind in kinds:
            if kind in UNSORTED:
                self.faults.append(f"a {kind} in {where}")

    def _same(self, where: str, kinds: Iterable[str]) -> str:
        """Return what these have in common; parameters become that."""
        kinds = list(kinds)
        told = {kind for kind in kinds if not isinstance(kind, Parameter) and kind not in ("null", "any")}
        if len(told) > 1:
            self.faults.append(f"{' and '.join(sorted(told))} in {where}")
        for kind in kinds:
            if isinstance(kind, Parameter) and told:
                self.used[kind].update(told)
                if told & UNSORTED:
                    # Who binds a short text does not bind a LOB, and these must be of one kind.
                    self.faults.append(f"the parameter {kind} and a lob in {where}")
        return min(told) if told else kinds[0] if kinds else "null"

    def _compare(self, where: str, kinds: Iterable[str]) -> str:
        kinds = list(kinds)
        self._sortable(where, kinds)
        self._same(where, kinds)
        return "boolean"

    def _kind(self, tree: Any, scope: Scope) -> str:
        """Return the kind of an expression, and check it."""
        for types, rule in self._rules():
            if isinstance(tree, types):
                return rule(tree, scope)
        if isinstance(tree, exp.Func):
            return self._call(tree, scope)
        raise AssertionError(f"The check does not know {type(tree).__name__}: {tree.sql('oracle')}")

    def _rules(self) -> Iterable[tuple[Any, Callable[[Any, Scope], str]]]:
        """Pair each class of expressions with its rule."""
        return (
            ((exp.Paren, exp.Distinct), self._inner),
            (exp.Literal, lambda tree, _: "text" if tree.is_string else "number"),
            (exp.Null, lambda *_: "null"),
            (exp.Boolean, lambda *_: "boolean"),
            (exp.Star, lambda *_: "any"),
            (exp.Placeholder, lambda tree, _: Parameter(tree.name)),
            (exp.Column, self._column),
            (exp.Dot, self._dot),
            ((exp.And, exp.Or, exp.Not), self._logic),
            ((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), self._comparison),
            (
                exp.Between,
                lambda tree, scope: self._compare(
                    "BETWEEN", [self._kind(tree.args[one], scope) for one in ("this", "low", "high")]
                ),
            ),
            (exp.In, self._in),
            (exp.Is, lambda tree, scope: (self._kind(tree.this, scope), "boolean")[1]),
            ((exp.Like, exp.Escape), self._like),
            (exp.Exists, lambda tree, scope: (self._query(tree.this, scope), "boolean")[1]),
            ((exp.Subquery, exp.Select), self._scalar),
            (exp.Tuple, self._row),
            (exp.Case, self._case),
            (
                (exp.Coalesce,),
                lambda tree, scope: self._same(
                    "COALESCE", [self._kind(one, scope) for one in (tree.this, *tree.expressions)]
                ),
            ),
            (exp.Nullif, self._nullif),
            (exp.DPipe, self._joined),
            ((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg), self._reckoned),
            (exp.Cast, lambda tree, scope: (self._kind(tree.this, scope), kind_of(tree.to.sql("oracle")))[1]),
            (exp.Window, self._window),
            (exp.AggFunc, self._aggregate),
            (exp.Mod, self._reckoned),
            ((exp.CurrentTimestamp, exp.Systimestamp), lambda *_: "moment"),
        )

    def _row(self, tree: Any, scope: Scope) -> str:
        for one in tree.expressions:
            self._kind(one, scope)
        return "any"

    def _inner(self, tree: Any, scope: Scope) -> str:
        inner = [tree.this] if tree.this is not None else tree.expressions
        return next(self._kind(one, scope) for one in inner)

    def _column(self, tree: Any, scope: Scope) -> str:
        name, table = name_of(tree), name_of(tree, "table")
        kind = scope.find(table, name) or PSEUDO.get(name)
        if kind is None and name == "NEXTVAL":
            return "number"
        if kind is None and name in FUNCTIONS and not FUNCTIONS[name].needed:
            return FUNCTIONS[name].gives
        if kind is None:
            self.faults.append(f"there is no column {tree.sql('oracle')}")
        return kind or "any"

    def _dot(self, tree: Any, scope: Scope) -> str:
        """A function of a package, or a field of a row that PL/SQL gathers."""
        if isinstance(tree.expression, exp.Func):
            return self._call(tree.expression, scope, f"{tree.this.name}.".upper())
        return self.variables.get(tree.expression.name.upper(), "any")

    def _logic(self, tree: Any, scope: Scope) -> str:
        for one in tree.iter_expressions():
            self._kind(one, scope)
        return "boolean"

    def _comparison(self, tree: Any, scope: Scope) -> str:
        return self._compare(type(tree).__name__, [self._kind(tree.left, scope), self._kind(tree.right, scope)])

    def _in(self, tree: Any, scope: Scope) -> str:
        query = tree.args.get("query")
        of_row = isinstance(tree.this, exp.Tuple)
        left = [self._kind(one, scope) for one in (tree.this.expressions if of_row else [tree.this])]
        if query is not None:
            right = list(self._query(query, scope).values())
            if len(left) != len(right):
                self.faults.append("IN of another number of columns")
            for pair in zip(left, right, strict=False):
                self._compare("IN", pair)
            return "boolean"
        return self._compare("IN", [*left, *(self._kind(one, scope) for one in tree.expressions)])

    def _like(self, tree: Any, scope: Scope) -> str:
        kinds = [self._kind(tree.this, scope), self._kind(tree.expression, scope)]
        for kind in kinds:
            if isinstance(kind, Parameter):
                self.used[kind].add("text")
            elif kind not in ("text", "lob", "null", "boolean", "any"):
                self.faults.append(f"{kind} in LIKE")
        return "boolean"

    def _scalar(self, tree: Any, scope: Scope) -> str:
        columns = list(self._query(tree, scope).values())
        if len(columns) != 1:
            self.faults.append(f"a value of {len(columns)} columns")
        return columns[0]

    def _case(self, tree: Any, scope: Scope) -> str:
        subject = [self._kind(tree.this, scope)] if tree.this else []
        results = []
        for one in tree.args["ifs"]:
            asked = self._kind(one.this, scope)
            if subject:
                self._compare("CASE", [*subject, asked])
            results.append(self._kind(one.args["true"], scope))
        if tree.args.get("default"):
            results.append(self._kind(tree.args["default"], scope))
        return self._same("CASE", results)

    def _nullif(self, tree: Any, scope: Scope) -> str:
        kinds = [self._kind(tree.this, scope), self._kind(tree.expression, scope)]
        self._compare("NULLIF", kinds)
        return kinds[0]

    def _joined(self, tree: Any, scope: Scope) -> str:
        kinds = [self._kind(tree.left, scope), self._kind(tree.right, scope)]
        for kind in kinds:
            if isinstance(kind, Parameter):
                self.used[kind].add("text")
            elif kind == "long":
                self.faults.append("a long in ||")
        return "lob" if "lob" in kinds else "text"

    def _reckoned(self, tree: Any, scope: Scope) -> str:
        kinds = [self._kind(one, scope) for one in tree.iter_expressions()]
        told = {kind for kind in kinds if not isinstance(kind, Parameter)}
        for kind in kinds:
            if isinstance(kind, Parameter):
                self.used[kind].add("number")
        if told <= {"number", "any", "null"}:
            return "number"
        if told <= {"moment", "number", "interval"}:
            is_distance = isinstance(tree, exp.Sub) and kinds == ["moment", "moment"]
            return "number" if is_distance else "moment"
        self.faults.append(f"{' and '.join(sorted(told))} in {tree.sql('oracle')}")
        return "any"

    def _window(self, tree: Any, scope: Scope) -> str:
        for ordered in tree.args["order"].expressions:
            self._sortable("KEEP", [self._kind(ordered.this, scope)])
        return self._kind(tree.this, scope)

    def _aggregate(self, tree: Any, scope: Scope) -> str:
        kind = self._kind(tree.this, scope)
        self._sortable(type(tree).__name__.upper(), [kind])
        return "number" if isinstance(tree, (exp.Count, exp.Sum)) else kind

    def _call(self, tree: Any, scope: Scope, package: str = "") -> str:
        # The parser gives some functions other names, and their arguments another order.
        written = tree.sql("oracle")
        given = tree.name if isinstance(tree, exp.Anonymous) else written.partition("(")[0]
        function = FUNCTIONS.get(f"{package}{given}".upper())
        if function is None:
            self.faults.append(f"there is no function {package}{given}")
            return "any"
        arguments = [
            one
            for value in tree.args.values()
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, exp.Expr) and not isinstance(one, exp.Var)
        ]
        kinds = [self._kind(one, scope) for one in arguments]
        if not function.needed <= len(kinds) <= len(function.takes):
            self.faults.append(f"{len(kinds)} arguments of {function.name}")
        for kind, taken in zip(kinds, function.takes, strict=False):
            if isinstance(kind, Parameter):
                self.used[kind].add("text" if "text" in taken else min(taken))
            elif kind not in taken and kind not in ("null", "any") and "any" not in taken:
                self.faults.append(f"{function.name} of {kind}")
        if function.gives == "same":
            return "text" if isinstance(kinds[0], Parameter) else kinds[0]
        return function.gives
