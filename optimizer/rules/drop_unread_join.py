"""Drop a join with one partner per row, or at most one in a left join, that nothing above reads.

    select c.name                            select c.name
      left_join c.id == row[0]        ->       table customers
        table customers
        aggregate Collect(o) by o.cid
          table orders

    select e                                 select e
      join on e.at is None            ->       where e.at is None
        table events                             table events
        parameter now()

So a query of a nest that does not read its inner bags does not compute them, and a change of a
parameter, as a tick of the clock, touches only rows that it is compared with. A union of joins with
the parameter is projected part by part: `split_disjunction` makes one of
`e.at is None or now() - e.at < age`.

Sound:  groups have different keys, so that a row has one partner or none, and stays once. A
        parameter has exactly one row at any time.
Needs:  the rows of the groups cannot be negative, and no dropped expression may raise; for a
        parameter, a condition that does not read it, and no keys beside it.
Pays:   the groups, and all work for their rows.
Source: join elimination of SQL optimizers.
"""

from __future__ import annotations

from dataclasses import replace

from optimizer import plan
from optimizer.expr import (
    Display,
    Expr,
    First,
    Function,
    Item,
    Lifted,
    Parameter,
    conjuncts,
    constant,
    reads,
    transform,
)
from optimizer.expressions.knowledge import total
from optimizer.expressions.text import first
from optimizer.plans.properties import bindings, may_be_negative, shapes
from optimizer.plans.side_conditions import of_left
from optimizer.subqueries import error_freedom, raising
from optimizer.traverse import functions, with_functions, with_inputs

KEY = Item(Parameter(0), constant(0))


def drop_unread_join(node: plan.Node) -> plan.Node:
    """Drop an unread join below a projection or an aggregate; other nodes unchanged."""
    if not isinstance(node, plan.Select | plan.Extend | plan.Aggregate | plan.SelectMany):
        return node
    return _without_parameter(node) or _without_groups(node)


def _without_parameter(node: plan.Node) -> plan.Node | None:
    """Return a node above the left side of a join with a parameter, or above each such join of a
    union; None if there is none, or the parameter is read."""
    if not isinstance(node, plan.Select | plan.Extend):
        return None
    below = node.input
    if isinstance(below, plan.UnionAll):
        if not _is_beside_parameter(below) or _reads_binding(node, bindings(below) - 1):
            return None
        return plan.UnionAll(*(replace(node, input=part) for part in below.inputs()))
    left = _beside_unread_parameter(below)
    if left is None or _reads_binding(node, place := bindings(left)):
        return None
    return with_inputs(with_functions(node, lambda f: _narrow(f, place)), [left])


def _is_beside_parameter(node: plan.Node) -> bool:
    """Return True if the last binding of all rows is the value of a parameter."""
    match node:
        case plan.UnionAll(left, right):
            return _is_beside_parameter(left) and _is_beside_parameter(right)
        case plan.Join(_, plan.Table(is_value=True)) | plan.Product(_, plan.Table(is_value=True)):
            return True
        case _:
            return False


def _beside_unread_parameter(node: plan.Node) -> plan.Node | None:
    """Return the rows of a join beside its parameter; None if it has none, or reads it."""
    match node:
        case plan.Product(left, plan.Table(is_value=True)):
            return left
        case plan.Join(left, plan.Table(is_value=True), plan.Match(None, None, Lifted() as on)):
            count = bindings(left)
            if count in reads(on.body):
                return None
            for test in conjuncts(on.body):
                left = plan.Where(left, of_left(on, test, count))
            return left
        case _:
            return None


def _without_groups(
    node: plan.Select | plan.Extend | plan.Aggregate | plan.SelectMany,
) -> plan.Node:
    """Return a node above the left side of a left join; itself unless each row of that has at
    most one partner, and no partner is read."""
    every: list[plan.Node] = [node]
    below = node.input
    while isinstance(below, plan.Where):
        every.append(below)
        below = below.input
    if not isinstance(below, plan.OuterJoin) or not _finds_one_at_most(below):
        return node
    place, of = bindings(below.left), error_freedom.known_of(below)
    every = [with_functions(each, lambda f: _calm(f, of)) for each in every]
    if any(_reads_binding(each, place) for each in every):
        return node
    made = below.left
    for each in reversed(every):
        made = with_inputs(with_functions(each, lambda f: _narrow(f, place)), [made])
    return made


def _calm(f: Function, of: error_freedom.RowFacts) -> Function:
    """Return a callable without needs that cannot raise."""
    if not isinstance(f, Lifted):
        return f
    return f.with_body(transform(f.body, lambda expr: _without_needs(expr, of)))


def _without_needs(expr: Expr, of: error_freedom.RowFacts) -> Expr:
    if not isinstance(expr, First):
        return expr
    return first(
        tuple(need for need in expr.needs if not error_freedom.is_calm(need, of)), expr.then
    )


def _reads_binding(node: plan.Node, place: int) -> bool:
    """Return True if a node reads, or keeps, a binding."""
    if isinstance(node, plan.Extend) and place in node.keep:
        return True
    if any(f.value is None and f.name != "Count" for f in getattr(node, "aggregates", ())):
        return True
    return any(not isinstance(f, Lifted) or place in reads(f.body) for f in functions(node))


def _narrow(f: object, count: int) -> Lifted:
    """Return a callable of the first bindings alone."""
    assert isinstance(f, Lifted)
    return replace(f, names=f.names[:count], parameters=count, made=None)


def _finds_one_at_most(joined: plan.OuterJoin) -> bool:
    """Return True if each left row has at most one partner, and the look-up cannot raise."""
    groups, match = joined.right, joined.match
    if joined.kind != "left" or match.on is not None or may_be_negative(groups):
        return False
    if not isinstance(groups, plan.Aggregate) or groups.row is not None:
        return False
    left, right = match.left_key, match.right_key
    if not (isinstance(left, Lifted) and isinstance(right, Lifted)):
        return False
    is_total = total(left.body, shapes(joined.left))
    return is_total and _has_all_of_key(right.body, groups) and raising.is_quiet(groups)


def _has_all_of_key(expr: Expr, groups: plan.Aggregate) -> bool:
    """Return True if different keys of groups have different values."""
    if expr == KEY:
        return True
    if not isinstance(expr, Display) or expr.kind != "tuple":
        return False
    if any(_has_all_of_key(item, groups) for item in expr.items):
        return True
    key = groups.key.body if isinstance(groups.key, Lifted) else None
    while isinstance(key, First):
        key = key.then
    if not isinstance(key, Display) or key.kind != "tuple":
        return False
    return all(Item(KEY, constant(n)) in expr.items for n in range(len(key.items)))
