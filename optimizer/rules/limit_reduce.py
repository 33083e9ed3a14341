"""Push a limit on an item into a reduce by a function that keeps its groups.

    where row[i] <= 3                where the other conditions
      reduce rows by g       ->        reduce first rows by g
        R                                R

    order_by row[i], limit 3         order_by row[i], limit 3
      reduce rows by g       ->        reduce first rows by g
        R                                R

So the first rows of each group in an order cost only these rows: rows that are not shown are not
numbered.

Sound:  the function promises that its rows are the same without those whose item is greater. At
        least n rows of its group precede a row whose number, or rank, is greater than n.
Needs:  a function that keeps its groups, and an item that it can limit; a constant. Between an
        order and the reduce, selects that cannot raise.
Pays:   the work of a change for the rows of a group that are not shown.
Source: SQL's ROW_NUMBER() OVER (...) <= n, as `top` of groups.
"""

from __future__ import annotations

from optimizer import plan
from optimizer.expr import (
    Attempt,
    Constant,
    Expr,
    Function,
    Item,
    Lifted,
    Operation,
    Parameter,
    conjunction,
    conjuncts,
)
from optimizer.expressions.text import compose
from optimizer.plans.join_lists import composed_over
from optimizer.plans.nodes.groups import keeper, replaced
from optimizer.plans.properties import shapes
from optimizer.plans.side_conditions import calls_may_raise
from optimizer.traverse import with_inputs


def limit_reduce(node: plan.Node) -> plan.Node:
    """Move a limit on an item into the reduce below, if its function can apply it.

    The test is dropped if the limit says all of it; other nodes are unchanged.
    """
    match node:
        case plan.Where(plan.Reduce(source, key, function), Lifted() as p):
            kept = keeper(function)
            for test in conjuncts(p.body) if kept is not None else ():
                item, most, says_all = _limit(test)
                limited = None if kept is None or item < 0 else kept.limited(item, most)
                if limited is None:
                    continue
                by = replaced(function, limited, f", row[{item}] <= {most}")
                first = plan.Reduce(source, key, by)
                left = tuple(t for t in conjuncts(p.body) if t is not test or not says_all)
                return plan.Where(first, p.with_body(conjunction(left))) if left else first
            return node
        case plan.OrderBy(below, (first, *_), int() as limit, offset) if not first.descending:
            found = _first_rows(below, first.function, limit + offset)
            return node if found is None else with_inputs(node, [found])
        case _:
            return node


def _first_rows(node: plan.Node, key: Function, most: int) -> plan.Node | None:
    """Return a node limited to rows whose key is at most `most`; None if no reduce can do it."""
    match node:
        case _ if not isinstance(key, Lifted):
            return None
        case plan.Reduce(source, by, function):
            kept, item = keeper(function), _limited_item(key.body)
            limited = None if kept is None or item < 0 else kept.limited(item, most)
            if limited is None:
                return None
            return plan.Reduce(source, by, replaced(function, limited, f", row[{item}] <= {most}"))
        case plan.Select(source, Lifted() as f) if not calls_may_raise(node):
            asked = compose(key, f, shapes(source))
        case plan.Extend(source) if not calls_may_raise(node):
            asked = composed_over(key, node)
        case _:
            return None
    found = None if asked is None else _first_rows(source, asked, most)
    return None if found is None else with_inputs(node, [found])


def _limit(test: Expr) -> tuple[int, int, bool]:
    """Return an item of the made row, its greatest value, and True if the test has no other
    condition."""
    match test:
        case Attempt(inner):
            return _limit(inner)
        case Operation("<=" | "<" | "==" as operator, (left, Constant(int() as most))):
            says_all = operator != "=="
            return _limited_item(left), most - (operator == "<"), says_all
        case Operation(">=" | ">" as operator, (Constant(int() as most), right)):
            return _limited_item(right), most - (operator == ">"), True
        case _:
            return -1, 0, False


def _limited_item(expr: Expr) -> int:
    """Return the place of the item of a group's row that an expression reads; -1 if it reads
    none."""
    match expr:
        case Item(Parameter(1), Constant(int() as item)):
            return item
        case Attempt(inner):
            return _limited_item(inner)
        case _:
            return -1
