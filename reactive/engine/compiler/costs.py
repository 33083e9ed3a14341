"""Cost of one changed row, operator by operator, estimated before any row is seen.

    probe left.cid == right.id    [matches, O(1)]        for a row of the left, of the right

A node of the logical plan tells its cost if partners are found by a key (`Facts.costs`); this
module tells how they are found.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import Any

from optimizer import plan
from optimizer.expr import Apply as Applied
from optimizer.expr import Expr, Lifted, walk
from optimizer.lifting import folds
from optimizer.plans import clauses
from optimizer.plans.explain import Explanation, headline
from optimizer.plans.facts import Cost, Costs
from optimizer.plans.forms import key_parts, unique_key
from optimizer.plans.nodes.groups import keeper
from optimizer.plans.properties import degree, nodes
from optimizer.traverse import functions_of_rows
from reactive.engine.compiler.physical import (
    Apply,
    EventProbe,
    FactorizedGroups,
    Intervals,
    Match,
    Multiway,
    Op,
    PairSums,
    PartialSums,
    Physical,
    PhysicalClosure,
    PhysicalCyclicCount,
    PhysicalCyclicJoin,
    PhysicalFixpoint,
    PhysicalIndex,
    PhysicalKeys,
    PhysicalLoop,
    PhysicalPlaces,
    PhysicalProbe,
    PhysicalRangeIndex,
    Pipeline,
)
from reactive.engine.compiler.queries import Running
from reactive.engine.operators.plain import chain_over, side_key_functions, sides

MEETING = (Multiway, PhysicalCyclicCount, PhysicalCyclicJoin, PairSums, Intervals)
"""Physical nodes that find the partners of a row, some of them as sums."""
DERIVING = (PhysicalFixpoint, PhysicalClosure, PhysicalLoop)
DEAR = {
    Cost.GROUP: "a callable is asked of all rows of a group whenever one of them changes\n"
    "  an `Aggregate` of your own, with a way to take a row back, costs a call",
    Cost.PAIRS: "each changed row meets all rows of the other side\n"
    "  a condition `left == right` among those of the join finds them by a key",
}


OF_WINDOWS = (
    "a changed row changes the answers of the rows behind it, up to all rows of its partition\n"
    "  a condition such as row_number() <= 10 leaves the first rows; lag, lead and frames between\n"
    "  two numbers of rows change the rows beside it only"
)
OF_SCANS = (
    "a changed row calls the step for the rows behind it, up to the first whose state stays as it\n"
    "  was, at most all rows of its partition; a row at the end costs one call"
)


def costs_of(node: Physical) -> Costs:
    """Return the cost of one changed row of each input, the dearest of the nodes that it meets."""
    inputs = len(node.inputs())
    match node:
        case Apply(op=op):
            return op.node.facts.costs(op.node)
        case Pipeline(chain=chain, sink=sink):
            return (max(_of_chain([*map(Op, chain.chain), *_some(sink)])),)
        case PhysicalProbe(left=left, right=right, join=join, chain=chain, sink=sink):
            above = max(_of_chain([*chain, *_some(sink)]))
            return tuple(max(cost, above) for cost in _of_join(join, left, right))
        case Match(left=left, right=right, join=join):
            return _of_join(join, left, right)
        case EventProbe(lookup=lookup, chain=chain):
            matches, one = lookup.node.facts.costs(lookup.node)
            return (max([matches, *_of_chain([*chain])]), one)
        case FactorizedGroups(left=left, right=right, sink=sink):
            above = max(_of_chain([sink]))
            met = (_cost_of_one(right), _cost_of_one(left))
            return tuple(max(cost, above) for cost in met)
        case PhysicalRangeIndex() | PhysicalPlaces():
            return (Cost.LOG,) * inputs
        case PartialSums(sums=sums) if sums.extremes:
            return (Cost.LOG,) * inputs
    kind = type(node)
    cost = Cost.MATCHES if kind in MEETING else Cost.ROUNDS if kind in DERIVING else Cost.ONE
    sink = getattr(node, "sink", None)
    return (max([cost, *_of_chain(_some(sink))]),) * inputs


def explain_costs(root: plan.Node, running: Running) -> Explanation:
    """Return the physical plan with the cost of a changed row in each line.

    Also the degree of the query, and the places where a change costs as much as all rows.
    """
    dear: dict[str, str] = {}
    columns: dict[str, list[str]] = {}

    def remark(physical: Physical) -> str:
        costs = costs_of(physical)
        if (kept := _kept_by(physical)) is not None and hasattr(kept, "describe_costs"):
            is_read = isinstance(physical, PhysicalPlaces)
            columns[physical.headline()] = kept.describe_costs(are_read=is_read)
        if isinstance(physical, PhysicalFixpoint):
            for clause in filter(meets_all, physical.program.clauses):
                dear[headline(chain_over(clause.body)[1])] = DEAR[Cost.PAIRS]
        if costs and max(costs) in DEAR:
            dear[physical.headline()] = _why_dear(physical, max(costs))
        return f"  [{', '.join(map(str, costs))}]" if costs else ""

    drawing = running.drawing(remark)
    lines = [drawing.text(), _degree(root), *_columns(columns), *_warnings(dear)]
    lines += _by_value(root)
    return Explanation("\n".join(lines), drawing)


def meets_all(clause: clauses.Clause) -> bool:
    """Return True if a changed row of a side of a recursive clause meets all of the other side."""
    join = None if clauses.is_closed(clause.body) else clauses.sides_of(chain_over(clause.body)[1])
    return join is not None and not all(map(side_key_functions, sides(join)))


def _degree(root: plan.Node) -> str:
    """Return the line that shows how many deltas of deltas a query has until it reads nothing."""
    found = degree(root)
    if found == inf:
        return "degree: none, rows are compared with those before"
    return f"degree: {found:.0f}"


def _why_dear(physical: Physical, cost: Cost) -> str:
    """Return why a changed row costs as much as many rows, and a remedy."""
    kept = _kept_by(physical)
    if getattr(kept, "is_dear_by_scans", False):
        return OF_SCANS
    return DEAR[cost] if kept is None else OF_WINDOWS


def _kept_by(physical: Physical) -> Any:
    """Return the function of a reduce that keeps its groups; None for other nodes."""
    node: plan.Node | None = None
    if isinstance(physical, Apply | PhysicalPlaces):
        node = physical.op.node if isinstance(physical, Apply) else physical.window.node
    return keeper(node.function) if isinstance(node, plan.Reduce) else None


def _columns(found: dict[str, list[str]]) -> Iterator[str]:
    """Yield for each window what a changed row changes in each of its columns."""
    for head, lines in found.items():
        yield "\n  ".join([f"a changed row changes, in {head}:", *lines])


def _warnings(dear: dict[str, str]) -> Iterator[str]:
    for head, why in dear.items():
        yield f"not efficiently incremental: {head}\n  {why}"


def _by_value(root: plan.Node) -> Iterator[str]:
    """Yield the loops over a whole collection of a changed row, and over its changes."""
    for node in nodes(root):
        for function in functions_of_rows(node):
            body = function.body if isinstance(function, Lifted) else None
            for part in [] if body is None else walk(body):
                if isinstance(part, Applied) and part.function.is_part:
                    yield from _explain_bag_callable(part)
        if isinstance(node, plan.Fixpoint | plan.Iterate):
            for inner in (each for body in node.bodies for each in nodes(body)):
                if isinstance(inner, plan.Unnest | plan.SelectMany) and _is_recursive(inner):
                    yield (
                        f"by value: {headline(inner)} goes over all of a bag that changed, in a "
                        "recursion\n  unnest it first, and have the recursion read that"
                    )


def _explain_bag_callable(part: Applied) -> Iterator[str]:
    """Yield how a callable over a bag is recomputed, if it is: by changes, or over all values."""
    if folds.folds_of(part.function.function):
        yield f"by what changed in a bag: {part.function.name}"
    elif any(word in part.reason for word in ("comprehension", "generator")):
        yield (
            f"by value: {part.function.name} goes over all of what it reads\n"
            "  sum, len, any, all, min, max and Bag of a comprehension over a Bag of the row go "
            "over what changed"
        )


def _is_recursive(node: plan.Node) -> bool:
    return any(isinstance(each, plan.Recursive) for each in nodes(node))


def _some(sink: Op | None) -> list[Op]:
    return [] if sink is None else [sink]


def _of_chain(chain: list[Op]) -> Costs:
    """Return the costs of operators in a chain, each with one input."""
    return [Cost.ONE, *[max(op.node.facts.costs(op.node)) for op in chain]]


def _of_join(join: Op, left: PhysicalIndex, right: PhysicalIndex | PhysicalKeys) -> Costs:
    """Return the costs of a join whose partners are looked up, if they have keys.

    A row meets at most one partner if the other side is looked up by a unique key.
    """
    if not (_find_key_exprs(left) and _find_key_exprs(right)):
        return (Cost.PAIRS, Cost.PAIRS)
    costs = join.node.facts.costs(join.node)
    found = (_finds_one(right), _finds_one(left))
    return [
        Cost.ONE if cost is Cost.MATCHES and one else cost
        for cost, one in zip(costs, found, strict=True)
    ]


def _cost_of_one(side: PhysicalIndex | PartialSums | PairSums) -> Cost:
    """Return the cost of the partners of a row: rows, or sums.

    There is one sum if no value of this side is in the groups.
    """
    finds_one = _finds_one(side) if isinstance(side, PhysicalIndex) else not side.sums.groups
    return Cost.ONE if finds_one else Cost.MATCHES


def _finds_one(side: PhysicalIndex | PhysicalKeys) -> bool:
    """Return True if a look-up in this side finds at most one row, by a unique key."""
    key = unique_key(side.source.of)
    some = all(isinstance(node, plan.Where) for node in side.chain.chain)
    return some and bool(key) and key <= _find_key_exprs(side)


def _find_key_exprs(side: PhysicalIndex | PhysicalKeys) -> frozenset[Expr | None]:
    """Return the expressions of the look-up key; None stands for an opaque callable."""
    found: set[Expr | None] = set()
    for function in side_key_functions(side.side):
        found.update(key_parts(function.body) if isinstance(function, Lifted) else [None])
    return frozenset(found)
