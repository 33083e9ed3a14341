"""The rows that UPDATE and DELETE change: those of WHERE, beside those of FROM or USING.

update t set a = m.v from m where m.k = t.id      each row of t that has an m, with its values
delete from t using m where m.k = t.id            each row of t that has an m
delete from t where id = 7                        looked up by the key
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optimizer import plan
from optimizer.expr import (
    TRUE,
    Attribute,
    Constant,
    Expr,
    Operation,
    Parameter,
    conjuncts,
    tuple_of,
)
from optimizer.traverse import has_subqueries
from reactive.engine.codegen.functions import callable_of
from reactive.errors import TableError, TransactionError
from reactive.languages.sql.queries.nodes import failures_told, freed
from reactive.languages.sql.queries.rows import Rows
from reactive.languages.sql.queries.sources import beside
from reactive.languages.sql.relation import relation_of
from reactive.languages.sql.statements.target import Target
from reactive.languages.sql.terms.schema import Schema
from reactive.languages.sql.terms.scope import Scope

Pairs = list[tuple[Any, Any]]
"""Rows, and those that take their place."""


def evaluated(node: plan.Node, tree: Any, around: Scope) -> list[Any]:
    """Return the rows of the plan of a query or statement, computed once.

    Raises
    ------
    PlanError: evaluating it fails for a row.
    TransactionError: inside a transaction, whose changes a query does not see.
    """
    engine = around.environment.engine
    if engine.mine:
        raise TransactionError(
            "a statement with a query cannot see what its transaction has changed so far\n"
            "  run it before the other changes, or in a transaction of its own"
        )
    views = tuple(dict.fromkeys(around.environment.views))
    relation = relation_of(engine, freed(node), Schema(()), views)
    with failures_told(tree, around), relation.materialize(on_error="raise") as view:
        return list(view)


def rows_with(rows: Rows, items: Sequence[Any], around: Scope) -> Rows:
    """Return rows beside those of the items of FROM in UPDATE, or of USING in DELETE."""
    for item in items:
        rows = beside(rows, item, around)
    return rows


def found_rows(tree: Any, target: Target, rows: Rows, made: Expr, around: Scope) -> Pairs:
    """Return the rows that WHERE finds, each as often as it is there, with what is made of it.

    Raises
    ------
    TableError: other values are made of a row beside one row of FROM than beside another.
    """
    scope, where = rows.scope(around), tree.args.get("where")
    test = TRUE if where is None else scope.true(where.this)
    source = target.table.plan if rows.bindings == 1 else rows.node
    node = plan.Select(
        plan.Where(source, scope.function(test)),
        scope.function(tuple_of(Parameter(0), made)),
    )
    if rows.bindings > 1:
        selected = plan.Select(freed(node.input), node.function)
        return _once(evaluated(selected, tree, scope), target)
    if has_subqueries(node) or has_subqueries(node.input):
        selected = plan.Select(freed(node.input), node.function)
        return [(row[0], row[1]) for row in evaluated(selected, tree, scope)]
    is_wanted, make = callable_of(scope.function(test)), callable_of(scope.function(made))
    with failures_told(tree, scope):
        return [(row, make(row)) for row in _candidates(target, test) if is_wanted(row)]


def _candidates(target: Target, test: Expr) -> Any:
    """The row of a key, where the condition has it, or all rows."""
    keyed, key = target.table._keyed, target.table.plan.key
    if keyed is None:
        return list(target.table)
    for part in conjuncts(test):
        match part:
            case Operation("==", (Attribute(Parameter(0), name), Constant(value))) if getattr(
                key.function, "__reduce__", lambda: ("", ())
            )()[1:2] == ((name,),):
                row = target.table.get(value)
                return [] if row is None else [row]
    return list(target.table)


def _once(found: Sequence[Any], target: Target) -> Pairs:
    """Return rows that are beside several others once for each copy that there is of them."""
    made: dict[Any, Any] = {}
    for row in found:
        old, values = row[0], row[1]
        if made.setdefault(old, values) != values:
            raise TableError(
                f"cannot update {old!r:.99} of table {target.name!r}: several rows of FROM"
                " give it different values\n  join it with one row: group FROM by its key"
            )
    return [(old, values) for old, values in made.items() for _ in range(target.table.count(old))]
