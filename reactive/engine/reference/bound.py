"""How far the rows of a loop with a tolerance may be from those of the query from scratch.

    d = the least difference that is passed on, or for the norm of the sum that times the rows

    times rounds     d (1 - q**times) / (1 - q)
    until settled    2 d / (1 - q): d / (1 - q) each from the only rows that stay

`api/iterate.py` derives it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.plans.explain import headline
from optimizer.plans.properties import bindings, nodes
from reactive.engine.codegen.functions import callable_of
from reactive.engine.collections.zset import Row, canonical
from reactive.engine.reference.bags import Bag

ROUNDING = 1 + 1e-9


def is_within(node: plan.Node, name: str) -> plan.Component | plan.Iterate | None:
    """The loop whose rows a query has within a bound; None of a query that has just its rows.

    Raises `PlanError` for a query whose rows are within no bound that is known.
    """
    loops = [part for part in nodes(node) if isinstance(part, plan.Iterate) and _depends(part)]
    if not loops:
        return None
    while isinstance(node, plan.View):
        node = node.input
    top = node.input if isinstance(node, plan.Component) else node
    if len(loops) > 1 or top is not loops[0]:
        raise _unknown(name, loops[0], "the query goes on from it, or reads several")
    if loops[0].contraction is None:
        raise _unknown(name, loops[0], "its contraction= is not known")
    assert isinstance(node, plan.Component | plan.Iterate)
    return node


def _depends(node: plan.Iterate) -> bool:
    """Whether its rows depend on earlier ones."""
    return node.is_tolerant() and (node.times is not None or node.contraction is not None)


def _unknown(name: str, loop: plan.Iterate, why: str) -> PlanError:
    return PlanError(
        f"cannot verify {name}: {headline(loop)}\n"
        f"  no bound is known for its rows: {why}\n"
        "  a view of the loop alone, with contraction=, can be verified"
    )


def bound_of(node: plan.Iterate, rows: int) -> float:
    """How far all rows may be, in the norm of the loop."""
    least = max(each.least for each in node.tolerances if each is not None)
    q = node.contraction
    assert q is not None
    d = least * (rows if node.norm == "sum" else 1)
    return d * (2 if node.times is None else 1 - q**node.times) / (1 - q)


def are_near(
    node: plan.Component | plan.Iterate, found: Bag, expected: Bag, rows: Callable[[plan.Node], Bag]
) -> bool:
    """Whether rows are within the bound of those that are expected; `rows` evaluates a query."""
    loop, index = (node, 0) if isinstance(node, plan.Iterate) else (node.input, node.index)
    assert isinstance(loop, plan.Iterate)
    tolerance = loop.tolerances[index]
    if tolerance is None:
        return found == expected
    ours, theirs = (_values(tolerance, loop, index, rows) for rows in (found, expected))
    if ours.keys() != theirs.keys() or any(weight != 1 for weight in found.values()):
        return False
    apart = [abs(value - theirs[key]) for key, value in ours.items() if value != theirs[key]]
    beside = [i for i in range(len(loop.names)) if i != index and loop.norm == "sum"]
    others = sum(len(rows(plan.Component(loop, i))) for i in beside)
    total = sum(apart) if loop.norm == "sum" else max(apart, default=0)
    return bool(total <= bound_of(loop, len(ours) + others) * ROUNDING)


def _values(tolerance: plan.Tolerance, loop: plan.Iterate, index: int, rows: Bag) -> dict[Any, Any]:
    """The value of each key."""
    count = bindings(loop.starts[index])
    by, value = _called(tolerance.by, count), _called(tolerance.value, count)
    return {canonical(by(row)): value(row) for row in rows}


def _called(function: Any, count: int) -> Callable[[Row], Any]:
    call = callable_of(function)
    return call if count == 1 else lambda row: call(*row)
