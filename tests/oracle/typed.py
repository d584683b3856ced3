"""A typed check of Oracle's statements without a server: names exist, kinds agree, LOBs stay where Oracle takes them.

A kind is one of those of `typed_schema`. A parameter has the kind of what it is compared with or written to; what it
is used as is gathered, so that a test can compare that with how it is bound.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import sqlglot
from sqlglot import exp

from tests.oracle.typed_schema import FUNCTIONS, PSEUDO, Table, kind_of

UNSORTED: Final = frozenset({"lob", "long"})
DOCUMENT: Final = "document"
"""What a parameter is that JSON_TABLE reads: a text of any length."""
_called = re.compile(r"([A-Za-z][\w$.]*)\s*\(")
_opaque = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"")
_grammar = frozenset(
    [
        "AND",
        "AS",
        "BETWEEN",
        "INSERT",
        "JOIN",
        "BY",
        "CASE",
        "CHAR",
        "COLUMNS",
        "DISTINCT",
        "ELSE",
        "EXISTS",
        "FIRST",
        "FROM",
        "IN",
        "INTO",
        "IS",
        "KEEP",
        "KEY",
        "LIKE",
        "NOT",
        "NCHAR",
        "NUMERIC",
        "NUMBER",
        "ON",
        "OR",
        "OVER",
        "SELECT",
        "SET",
        "THEN",
        "UNION",
        "UPDATE",
        "USING",
        "VALUES",
        "VARCHAR2",
        "WHEN",
        "WHERE",
    ]
)
"""What stands before a parenthesis and is no function."""
_taught = frozenset({"COALESCE", "NVL", "NULLIF", "CAST", "JSON_TABLE"})
"""Functions that the check knows by their rules and not by a table."""


class Parameter(str):
    """The kind of a parameter that nobody has used yet: its name."""

    __slots__ = ()


def _of(tree: Any, part: str = "this") -> str:
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


class Check:
    """The check of one statement; `faults` says what is wrong, `used` as what each parameter is used."""

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

    def statement(self, text: str) -> Check:
        """Check a statement of SQL."""
        self._names(text)
        bare = re.sub(r"XMLSERIALIZE\(CONTENT (\S+) AS CLOB\)", r"XMLSERIALIZE(\1)", text)
        bare = re.sub(r":(OLD|NEW)\.", r"\1_row.", bare)
        tree: Any = sqlglot.parse_one(bare, dialect="oracle")
        outer = Scope()
        outer.sources = {"": self.variables, **self.aliases}
        rules: dict[Any, Callable[[Any, Scope], Any]] = {
            exp.Insert: self._insert,
            exp.Update: self._update,
            exp.Delete: self._delete,
            exp.Merge: self._merge,
        }
        rule: Callable[[Any, Scope], Any] = rules.get(type(tree)) or self._query
        rule(tree, outer)
        return self

    def _names(self, text: str) -> None:
        known = FUNCTIONS.keys() | _taught | _grammar
        for match in _called.finditer(_opaque.sub("''", text)):
            before = text[: match.start()].rstrip().upper()
            name = match[1].upper()
            # A table before its columns, and a variable that is a list, are no functions.
            if name in known or before.endswith(("INTO", "HELD", "WITH", "TABLE")):
                continue
            if name in self.variables or name.rpartition(".")[2] in self.tables:
                continue
            self.faults.append(f"there is no function {name}")

    # --- statements ---

    def _insert(self, tree: Any, outer: Scope) -> None:
        target, columns = tree.this, []
        if isinstance(target, exp.Schema):
            columns, target = (
                [
                    _of(column) if isinstance(column, exp.Column) else _of(exp.Column(this=column))
                    for column in target.expressions
                ],
                target.this,
            )
        kinds = self._columns(target)
        given = tree.expression
        if isinstance(given, exp.Values):
            row = given.expressions[0]
            values = [self._kind(one, outer) for one in row.expressions or [row.this]]
        else:
            values = list(self._query(given, outer).values())
        self._written(_of(target), kinds, columns or list(kinds), values)

    def _update(self, tree: Any, outer: Scope) -> None:
        scope = Scope(outer)
        self._source(tree.this, scope)
        self._set(tree, scope, self._columns(tree.this))
        self._where(tree, scope)

    def _set(self, tree: Any, scope: Scope, kinds: Table) -> None:
        for one in tree.expressions:
            self._written("", kinds, [_of(one.this)], [self._kind(one.expression, scope)])

    def _delete(self, tree: Any, outer: Scope) -> None:
        scope = Scope(outer)
        self._source(tree.this, scope)
        self._where(tree, scope)

    def _merge(self, tree: Any, outer: Scope) -> None:
        scope, kinds = Scope(outer), self._columns(tree.this)
        for source in (tree.this, tree.args["using"]):
            self._source(source, scope)
        self._kind(tree.args["on"], scope)
        for when in tree.args["whens"].expressions:
            then = when.args["then"]
            if isinstance(then, exp.Update):
                self._set(then, scope, kinds)
            else:
                names = [_of(column) for column in then.this.expressions]
                self._written("", kinds, names, [self._kind(one, scope) for one in then.expression.expressions])

    def _written(self, table: str, kinds: Table, columns: list[str], values: list[str]) -> None:
        if len(columns) != len(values):
            self.faults.append(f"{len(values)} values for {len(columns)} columns of {table}")
        for column, value in zip(columns, values, strict=False):
            if column not in kinds:
                self.faults.append(f"there is no column {column} to write to")
            elif isinstance(value, Parameter):
                self.used[value].add(kinds[column])
            # A text becomes a LOB where it is written.
            elif value not in ("null", "any", kinds[column]) and (value, kinds[column]) != ("text", "lob"):
                self.faults.append(f"{column} is {kinds[column]}, and {value} is written to it")

    # --- queries ---

    def _query(self, tree: Any, outer: Scope) -> dict[str, str]:
        """Check a query; return its columns with their kinds."""
        if isinstance(tree, (exp.Subquery, exp.Paren)):
            return self._query(tree.this, outer)
        self._with(tree, outer)
        if isinstance(tree, exp.SetOperation):
            return self._union(tree, outer)
        assert isinstance(tree, exp.Select), type(tree)
        scope = Scope(outer)
        for source in [tree.args.get("from_"), *tree.args.get("joins", [])]:
            if source is not None:
                self._source(source.this, scope)
        for join in tree.args.get("joins", []):
            if join.args.get("on") is not None:
                self._kind(join.args["on"], scope)
        self._where(tree, scope)
        columns = self._selected(tree, scope)
        self._grouped(tree, scope)
        if tree.args.get("distinct"):
            self._sortable("DISTINCT", columns.values())
        for ordered in tree.args["order"].expressions if tree.args.get("order") else ():
            self._ordered(ordered.this, scope, columns)
        return columns

    def _with(self, tree: Any, outer: Scope) -> None:
        for common in tree.args["with_"].expressions if tree.args.get("with_") else ():
            names = [column.name.upper() for column in common.args["alias"].columns]
            body = common.this
            first = body.this if names and isinstance(body, exp.SetOperation) else body
            made = self._query(first, outer)
            if names:
                made = dict(zip(names, made.values(), strict=True))
            self.tables = {**self.tables, common.alias.upper(): made}
            if first is not body:
                self._query(body.expression, outer)

    def _union(self, tree: Any, outer: Scope) -> dict[str, str]:
        left, right = self._query(tree.this, outer), self._query(tree.expression, outer)
        if len(left) != len(right):
            self.faults.append("a union of different numbers of columns")
        for one, other in zip(left.values(), right.values(), strict=False):
            self._same("UNION", [one, other])
        if tree.args.get("distinct"):
            self._sortable("UNION", [*left.values(), *right.values()])
        return left

    def _source(self, tree: Any, scope: Scope) -> None:
        if isinstance(tree, exp.Subquery):
            # A query in FROM sees nothing of the query that it stands in.
            hidden, scope.sources = scope.sources, {}
            columns = self._query(tree.this, Scope(self._outermost(scope)))
            scope.sources = hidden
        elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.JSONTable):
            columns = self._document(tree.this, scope)
        else:
            columns = dict(self._columns(tree))
        scope.sources[_of(tree, "alias") or _of(tree) or f"query {len(scope.sources)}"] = columns
        for join in tree.args.get("joins") or ():
            self._source(join.this, scope)

    @staticmethod
    def _outermost(scope: Scope) -> Scope:
        while scope.outer is not None:
            scope = scope.outer
        return scope

    def _document(self, tree: Any, scope: Scope) -> dict[str, str]:
        given = self._kind(tree.this, scope)
        if isinstance(given, Parameter):
            self.used[given].add(DOCUMENT)
        elif given not in ("text", "lob"):
            self.faults.append(f"JSON_TABLE reads {given}")
        columns = tree.args["schema"].expressions
        # The parser has one type for all texts.
        return {_of(column): kind_of(column.args["kind"].sql("oracle")) for column in columns}

    def _columns(self, tree: Any) -> Table:
        name = _of(tree)
        if name not in self.tables:
            self.faults.append(f"there is no table {name}")
        return self.tables.get(name, {})

    def _where(self, tree: Any, scope: Scope) -> None:
        if tree.args.get("where") is not None:
            self._kind(tree.args["where"].this, scope)

    def _selected(self, tree: Any, scope: Scope) -> dict[str, str]:
        columns: dict[str, str] = {}
        for place, one in enumerate(tree.expressions):
            if isinstance(one, exp.Star):
                columns |= {name: kind for source in scope.sources.values() for name, kind in source.items()}
            elif isinstance(one, exp.Column) and isinstance(one.this, exp.Star):
                columns |= scope.sources.get(_of(one, "table"), {})
            else:
                called = _of(one, "alias") or (_of(one) if isinstance(one, exp.Column) else "")
                name = called or f"column {place}"
                columns[name] = self._kind(one.this if isinstance(one, exp.Alias) else one, scope)
        return columns

    def _grouped(self, tree: Any, scope: Scope) -> None:
        group = tree.args.get("group")
        by = group.expressions if group else []
        self._sortable("GROUP BY", [self._kind(one, scope) for one in by])
        if tree.args.get("having"):
            self._kind(tree.args["having"].this, scope)
        if not by and not any(self._aggregates(one) for one in tree.expressions):
            return
        texts = {one.sql("oracle") for one in by}
        order = [one.this for one in tree.args["order"].expressions] if tree.args.get("order") else []
        for one in [*tree.expressions, *order]:
            loose = list(self._ungrouped(one.this if isinstance(one, exp.Alias) else one, texts))
            self.faults += [f"{column} is not in GROUP BY" for column in loose]

    def _aggregates(self, tree: Any) -> bool:
        return any(found.parent_select is tree.parent_select for found in tree.find_all(exp.AggFunc))

    def _ungrouped(self, tree: Any, grouped: set[str]) -> Iterable[str]:
        if tree.sql("oracle") in grouped or isinstance(tree, (exp.AggFunc, exp.Window, exp.Query)):
            return
        if isinstance(tree, exp.Column):
            yield tree.sql("oracle")
        for child in tree.iter_expressions():
            yield from self._ungrouped(child, grouped)

    def _ordered(self, tree: Any, scope: Scope, columns: Mapping[str, str]) -> None:
        if isinstance(tree, exp.Literal) and not tree.is_string:
            kind = list(columns.values())[int(tree.name) - 1]
        elif isinstance(tree, exp.Column) and not tree.table and _of(tree) in columns:
            kind = columns[_of(tree)]
        else:
            kind = self._kind(tree, scope)
        self._sortable("ORDER BY", [kind])

    # --- expressions ---

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
        name, table = _of(tree), _of(tree, "table")
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
