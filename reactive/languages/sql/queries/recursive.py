"""WITH RECURSIVE, by the fixpoint of the library.

with recursive reach(a, b) as (
    select a, b from edges  union  select r.a, e.b from reach r join edges e on r.b = e.a)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from optimizer import plan
from optimizer.errors import StratificationError
from optimizer.expr import NONE
from reactive.api.fixpoint import fixpoint
from reactive.api.iterate import iterate
from reactive.api.relation import AnyRelation, Relation
from reactive.languages.sql.expressions.casts import applied, cast
from reactive.languages.sql.expressions.zones import check_alike, is_constant
from reactive.languages.sql.postgres.numbers import RANGES
from reactive.languages.sql.queries.query import Query
from reactive.languages.sql.sqlite.comparisons import has_collation
from reactive.languages.sql.terms.catalog import Named, named_rows
from reactive.languages.sql.terms.common_types import goes_on
from reactive.languages.sql.terms.schema import Schema
from reactive.languages.sql.terms.scope import Scope
from reactive.languages.sql.terms.types import NULL, SqlType, sql_name
from reactive.languages.sql.terms.values import Value


def recursive(cte: Any, names: Sequence[str], around: Scope) -> Named:
    """The relation that a query of WITH RECURSIVE defines by itself.

    Raises
    ------
    PlanError: it is no union of where it begins and of how it goes on.
    """
    body = cte.this
    if not isinstance(body, exp.Union):
        raise around.error(
            cte, f"recursive {cte.alias!r} is no UNION of where it begins and how it goes on"
        )
    for part in ("order", "limit", "offset"):
        if body.args.get(part):
            raise around.error(
                body.args[part],
                f"recursive {cte.alias!r} cannot have {part.upper()}",
                "say in a WHERE where the recursion ends, and order what is made of it",
            )
    first = around.query(body.left)
    called = around.renamed(names, first.names, cte)
    begin, schema = first.rows(called)
    if around.dialect.numeric_booleans:  # what follows may be of other classes
        columns = (replace(c, type=replace(c.type, kind="any")) for c in schema.columns)
        schema = Schema(tuple(columns))
    return _settled(cte, begin, schema, called, around)


def _settled(
    cte: Any, begin: plan.Node, schema: Schema, names: tuple[str, ...], around: Scope
) -> Named:
    """The fixpoint; columns may become NULL on the way, which is only known when it is made."""
    is_bag = not cte.this.args.get("distinct")
    while True:
        step = _Step(cte, begin, schema, names, around)
        found = _all_rounds(step, begin, around) if is_bag else _fixpoint(step, begin, around)
        columns = tuple(
            replace(mine, nullable=mine.nullable or theirs.nullable)
            for mine, theirs in zip(schema.columns, step.made[0].columns, strict=True)
        )
        if columns == schema.columns:
            return named_rows(found.plan, schema)
        schema = Schema(columns)


def _fixpoint(step: _Step, begin: plan.Node, around: Scope) -> AnyRelation:
    """Return the smallest set of rows; where a row may take others away, the set by rounds, as long
    as the recursion is read by the FROM of its own step alone.

    Raises
    ------
    StratificationError: a sub-query of the step reads it.
    """
    try:
        return fixpoint(step.set_of)
    except StratificationError:
        inside = step.read_inside()
        if inside is not None:
            raise _inside_itself(inside, around) from None
    start: AnyRelation = Relation(around.environment.engine, begin).distinct()

    def again(last: AnyRelation, found: AnyRelation) -> tuple[AnyRelation, AnyRelation]:
        following = step.following(last).distinct().difference(found)
        return following, found.union(following)

    return iterate(again, (start, start), until="settled")[1]


def _inside_itself(node: exp.Expr, around: Scope) -> StratificationError:
    told = around.error(
        node,
        f"recursive {node.name!r} is read in a sub-query of its own step, where a new row may take "
        "others away",
        "read it in the FROM of the step, or write UNION ALL",
    )
    return StratificationError(str(told))


def _all_rounds(step: _Step, begin: plan.Node, around: Scope) -> AnyRelation:
    """The rows of all rounds, as often as they are there."""
    start: AnyRelation = Relation(around.environment.engine, begin)

    def again(last: AnyRelation, found: AnyRelation) -> tuple[AnyRelation, AnyRelation]:
        following = step.following(last)
        return following, found.union_all(following)

    return iterate(again, (start, start), until="settled")[1]


class _Step:
    """What some rows are followed by, and where they begin."""

    def __init__(
        self, cte: Any, begin: plan.Node, schema: Schema, names: tuple[str, ...], around: Scope
    ) -> None:
        self._cte, self._begin, self._schema = cte, begin, schema
        self._names, self._around = names, around
        self.made: list[Schema] = []

    def set_of(self, relation: AnyRelation) -> AnyRelation:
        """The rows so far, those that follow them, and those that all begin with."""
        following = self.following(relation)
        return Relation(following._engine, plan.Union(self._begin, following.plan))

    def read_inside(self) -> exp.Expr | None:
        """Return where a sub-query of the step reads the recursion; None if none does."""
        body = self._cte.this.right
        name = self._cte.alias.lower()
        read = [each for each in body.find_all(exp.Table) if each.name.lower() == name]
        inside: list[exp.Expr] = [each for each in read if each.parent_select is not body]
        return inside[0] if inside else None

    def following(self, relation: AnyRelation) -> AnyRelation:
        """The rows that follow others."""
        inner = self._around.around()
        known = {self._cte.alias: named_rows(relation.plan, self._schema)}
        inner.environment = inner.environment.with_names(known)
        again: Query = inner.query(self._cte.this.right)
        if len(again.values) != len(self._names):
            raise self._around.error(
                self._cte.this.right,
                f"recursive {self._cte.alias!r} has {len(self._names)} columns, "
                f"and goes on with {len(again.values)}",
            )
        if self._cte.this.args.get("distinct") and any(
            has_collation(column.type) for column in self._schema.columns
        ):
            raise self._around.error(
                self._cte.this,
                f"recursive {self._cte.alias!r} is a UNION of texts with a collation of sqlite",
                "write COLLATE BINARY, or UNION ALL",
            )
        node, schema = self._of_columns(again).rows(self._names)
        self.made.append(schema)
        return Relation(self._around.environment.engine, node)

    def _of_columns(self, again: Query) -> Query:
        """Return a query with columns of the types that the recursion begins with.

        Raises
        ------
        PlanError: the dialect takes a recursion only where they are of them.
        """
        node, scope = self._cte.this.right, again.scope
        if scope.dialect.numeric_booleans:
            return again
        values = []
        for place, (column, value) in enumerate(
            zip(self._schema.columns, again.values, strict=True)
        ):
            following = value.type
            if value.type.kind == "text" and is_constant(value) and column.type.kind != "array":
                value, following = cast(value, column.type, scope), NULL
            if not is_constant(value) and "text" not in (column.type.kind, following.kind):
                check_alike(node, scope, Value(NONE, column.type), value)
            if not goes_on(scope.dialect.name, column.type, following):
                raise self._around.error(
                    node,
                    f"cannot go on with {sql_name(value.type)} in column {place + 1}: recursive "
                    f"{self._cte.alias!r} begins with {sql_name(column.type)}",
                    f"make them one: cast(... as {sql_name(column.type)})",
                )
            if column.type.kind not in ("any", "null") and value.type.kind != "any":
                value = _narrowed(value, column.type, scope)
            values.append(value)
        return replace(again, values=tuple(values))


def _narrowed(value: Value, to: SqlType, scope: Scope) -> Value:
    """Return a value as one of the type that a recursion begins with, which it may not fit."""
    if value.type == to:
        return value
    fits = value.type.kind in ("int", "bool") and (value.type.size or 0) <= (to.size or 0)
    made = cast(value, to, scope)
    if to.kind != "int" or to.size not in RANGES or fits:
        return made
    return applied(RANGES[to.size], to, made)
