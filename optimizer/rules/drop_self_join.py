"""Read a row of a keyed table twice, instead of joining the table with itself by its key.

    join a.id == b.id and a.x < b.y         bind a, a
      where a.x > 3                           where a.y > 4 and a.x < a.y
        table t (key id)              ->        where a.x > 3
      where b.y > 4                               table t (key id)
        table t (key id)

A semi_join is the `where` alone, and an anti_join the `where` of the negation. The left may be a
join in which rows of the table are a binding.

Sound:  a keyed table has at most one row with a key: the row itself. An equation of keys that may
        be NaN stays a condition of the row.
Needs:  a stored table, conditions of the right that raise nothing, and nothing before the equation
        that may raise; for semi_join and anti_join the whole predicate is total.
Pays:   a join and its indexes.
Source: [i3ql] redundant self joins.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import Expr, Lifted, Operation, Parameter, conjunction, conjuncts, substitute
from optimizer.expressions.knowledge import total
from optimizer.expressions.simplification import holds_no_nan
from optimizer.expressions.text import one_row
from optimizer.plans.forms import unique_key
from optimizer.plans.properties import below_wheres, bindings, row_shape
from optimizer.plans.side_conditions import equation_of, pair_shapes

Joins = plan.Join | plan.SemiJoin | plan.AntiJoin


def drop_self_join(node: plan.Node) -> plan.Node:
    """Replace a join of rows of a table with the table by conditions; other nodes unchanged."""
    if not isinstance(node, Joins):
        return node
    on, key, table = node.match.on, unique_key(node.right), below_wheres(node.right)
    if not key or not isinstance(on, Lifted) or node.match.left_key is not None:
        return node
    asked = _conditions_of_right(node.right)
    if asked is None or type(table) is not plan.Table or not table.stored:
        return node
    for place in range(bindings(node.left)):
        if _table_of(node.left, place) == table:
            rest = _rest(node, conjuncts(on.body), key, place)
            if rest is not None:
                own = [substitute(test, (Parameter(place),)) for test in asked]
                return _without_join(node, on, [*own, *rest], place)
    return node


def _conditions_of_right(node: plan.Node) -> list[Expr] | None:
    """Return the conditions of the right, in order; None if one may raise."""
    of, found = (row_shape(node),), []
    while isinstance(node, plan.Where):
        if not isinstance(node.predicate, Lifted) or not total(node.predicate.body, of):
            return None
        found.append(node.predicate.body)
        node = node.input
    return found[::-1]


def _table_of(node: plan.Node, place: int) -> plan.Node | None:
    """Return the table whose rows are a binding of a node; None for a binding of other rows."""
    while True:
        match node:
            case plan.Table():
                return node
            case plan.Where(source) | plan.Shared(source):
                node = source
            case plan.SemiJoin(left) | plan.AntiJoin(left):
                node = left
            case plan.Join(left, right) | plan.Product(left, right):
                if place < bindings(left):
                    node = left
                elif bindings(right) == 1:
                    node, place = right, 0
                else:
                    return None
            case _:
                return None


def _rest(
    node: Joins, tests: tuple[Expr, ...], key: frozenset[Expr], place: int
) -> list[Expr] | None:
    """Return what a predicate asks of a row and itself beside equal keys, in terms of the row.

    Return None if it does not ask for equal keys, or something before may raise. The row is at
    `place` of the left.
    """
    count, of = bindings(node.left), pair_shapes(node)
    if not isinstance(node, plan.Join) and not all(total(test, of) for test in tests):
        return None
    same = (*map(Parameter, range(count)), Parameter(place))
    found: set[Expr] = set()
    rest: list[Expr] = []
    for test in tests:
        sides = equation_of(test, count)
        part = None if sides is None else one_row(sides[1], count, 1)
        if sides is not None and part in key and sides[0] == substitute(part, (same[place],)):
            found.add(part)
            if holds_no_nan(part, (of[count],)):
                continue
        elif not found >= key and not total(test, of):
            return None
        rest.append(substitute(test, same))
    return rest if found >= key else None


def _without_join(node: Joins, on: Lifted, tests: list[Expr], place: int) -> plan.Node:
    """Return the rows of the left that pass the tests, for a join with the row at `place` twice."""
    count, left = bindings(node.left), node.left
    test = conjunction(tuple(tests))
    if isinstance(node, plan.AntiJoin):
        test = Operation("not", (test,))
    if tests or isinstance(node, plan.AntiJoin):
        left = plan.Where(left, Lifted(test, on.names[:count], on.origins, count))
    if not isinstance(node, plan.Join):
        return left
    row = Lifted(Parameter(place), on.names[:count], on.origins, count)
    return plan.Extend(left, tuple(range(count)), (row,))
