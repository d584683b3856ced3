"""A typed check of Oracle's statements without a server: names exist, kinds agree, LOBs stay where Oracle takes them.

A kind is one of those of `typed_schema`. A parameter has the kind of what it is compared with or written to; what it
is used as is gathered, so that a test can compare that with how it is bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import sqlglot
from sqlglot import exp

from tests.oracle.typed_kinds import Kinds, Parameter, Scope, name_of
from tests.oracle.typed_schema import FUNCTIONS, Table, kind_of

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


class Check(Kinds):
    """The check of one statement: its names, its tables, and its expressions."""

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
                    name_of(column) if isinstance(column, exp.Column) else name_of(exp.Column(this=column))
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
        self._written(name_of(target), kinds, columns or list(kinds), values)

    def _update(self, tree: Any, outer: Scope) -> None:
        scope = Scope(outer)
        self._source(tree.this, scope)
        self._set(tree, scope, self._columns(tree.this))
        self._where(tree, scope)

    def _set(self, tree: Any, scope: Scope, kinds: Table) -> None:
        for one in tree.expressions:
            self._written("", kinds, [name_of(one.this)], [self._kind(one.expression, scope)])

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
                names = [name_of(column) for column in then.this.expressions]
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
        scope.sources[name_of(tree, "alias") or name_of(tree) or f"query {len(scope.sources)}"] = columns
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
        return {name_of(column): kind_of(column.args["kind"].sql("oracle")) for column in columns}

    def _columns(self, tree: Any) -> Table:
        name = name_of(tree)
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
                columns |= scope.sources.get(name_of(one, "table"), {})
            else:
                called = name_of(one, "alias") or (name_of(one) if isinstance(one, exp.Column) else "")
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
        elif isinstance(tree, exp.Column) and not tree.table and name_of(tree) in columns:
            kind = columns[name_of(tree)]
        else:
            kind = self._kind(tree, scope)
        self._sortable("ORDER BY", [kind])
