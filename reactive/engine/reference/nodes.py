"""The rows of one node of a plan, with those of its inputs known: one plain comprehension each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from optimizer import plan
from optimizer.plans.extended import row_of
from reactive.engine.reference.bags import (
    Bag,
    Of,
    added,
    asked,
    bag_of,
    both,
    caller,
    difference,
    once,
    paired,
    there,
)
from reactive.engine.reference.groups import grouped
from reactive.engine.reference.joins import joined, pairing
from reactive.engine.reference.order import in_order
from reactive.engine.reference.reduce import reduced
from reactive.engine.reference.top import topped
from reactive.engine.runtime.progress import SILENT, Progress


def inputs_of(node: plan.Node) -> tuple[plan.Node, ...]:
    """The nodes whose rows are asked for: of a filter over pairs those that are paired."""
    found = pairing(node)
    return node.inputs() if found is None else (found.left, found.right)


def rows_of(node: plan.Node, of: Of, progress: Progress = SILENT) -> Bag:
    """The rows of a node that is neither a table nor a recursion."""
    found = pairing(node)
    if found is not None:
        return joined(node, found, of, progress)
    call = linear(node)
    if call is not None:
        return call(of(*node.inputs()))
    return together(node, of)


def together(node: plan.Node, of: Of) -> Bag:
    """The rows of a node that looks at all rows of its inputs together."""
    match node:
        case plan.Empty():
            return Counter()
        case plan.Values(rows):
            return Counter(rows)
        case plan.Distinct(source):
            return once(there(of(source)))
        case plan.Union(left, right):
            return once(there(both(of(left), of(right))))
        case plan.UnionAll(left, right):
            return both(of(left), of(right))
        case plan.Difference(left, right):
            hidden = of(right)
            return once(row for row in there(of(left)) if hidden[row] <= 0)
        case plan.DifferenceAll(left, right):
            return there(of(left)) - there(of(right))
        case plan.Intersection(left, right):
            return once(of(left) & of(right))
        case plan.IntersectionAll(left, right):
            return of(left) & of(right)
        case plan.Previous(source, moment):
            now = of(source)
            was: Bag = moment.before(now, difference(now, added(moment.pending)))
            return was
        case plan.View() | plan.Tolerate():
            return of(*node.inputs())
        case plan.Aggregate(source):
            return grouped(node, of(source))
        case plan.Reduce(source):
            return reduced(node, of(source))
        case plan.Top(source):
            return topped(node, of(source))
        case plan.OrderBy(source):
            return Counter(in_order(node, of(source)))
        case _:
            raise TypeError(f"cannot evaluate plan node {type(node).__name__}")


def linear(node: plan.Node) -> Callable[[Bag], Bag] | None:
    """What a node that looks at rows one by one makes of some; None if it does not."""
    match node:
        case plan.Where(source, p):
            test = asked(p, source)
            return lambda bag: bag_of({row: n for row, n in bag.items() if test(row)})
        case plan.Negate():
            return lambda bag: bag_of({row: -n for row, n in bag.items()})
        case plan.Select(source, f):
            call = caller(f, source)
            return lambda bag: added((call(row), n) for row, n in bag.items())
        case plan.Extend(source):
            call = caller(row_of(node), source)
            return lambda bag: added((call(row), n) for row, n in bag.items())
        case plan.SelectMany(source, f):
            call = caller(f, source)
            return lambda bag: added((e, n) for row, n in bag.items() for e in call(row))
        case plan.Unnest(source, f):
            call, pair = caller(f, source), paired(source)
            return lambda bag: added((pair(r, e), n) for r, n in bag.items() for e in call(r))
        case _:
            return None
