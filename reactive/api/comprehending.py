"""Comprehensions over the relations of a database: what their reading asks of the engine.

Aggregates are the engine's own, relations are plans, and sub-queries in callables become joins when
the relation is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from optimizer import plan
from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque, opaque
from optimizer.comprehensions.engine import Fold
from optimizer.comprehensions.query import read_callable
from optimizer.comprehensions.rows import Rows, selected
from optimizer.errors import DuplicateKeyError, PlanError
from optimizer.expr import Constant, Expr, Function, Lifted, walk
from optimizer.expressions.knowledge import Shapes
from optimizer.lifting import outer_values
from optimizer.rules.read_callables import read_callables
from optimizer.subqueries.freed import freed
from optimizer.subqueries.lateral import lateral
from optimizer.traverse import functions
from reactive.api.callables import Live
from reactive.api.smallest import smallest
from reactive.engine.collections.bag import Bag
from reactive.engine.collections.order import compare_plainly, pairs_in_order
from reactive.engine.collections.zset import canonical
from reactive.engine.compiler.definition import agree
from reactive.engine.operators.accumulators import (
    Accumulator,
    CollectAccumulator,
    CountAccumulator,
    MaxAccumulator,
    MinAccumulator,
    SumAccumulator,
    UserAccumulator,
)

MOST_ROUNDS = 10_000
PLAIN: dict[str, type[Any]] = {
    "Sum": SumAccumulator,
    "Count": CountAccumulator,
    "Min": MinAccumulator,
    "Max": MaxAccumulator,
    "Collect": CollectAccumulator,
}


def in_order(pairs: Iterable[tuple[Any, Any]], descending: bool) -> tuple[Any, ...]:
    """Rows in the order of their keys, as `order_by` has them."""
    return tuple([row for _, row in pairs_in_order(pairs, descending)])


def by_themselves(values: Iterable[Any], descending: bool) -> tuple[Any, ...]:
    """Values in their own order, as `order_by` has them."""
    every = list(values)
    if compare_plainly(every):
        return tuple(sorted(every, reverse=descending))
    return in_order(zip(every, every, strict=True), descending)


class Comprehending:
    """The engine as comprehensions see it."""

    bag: type = Bag
    in_order = staticmethod(in_order)
    by_themselves = staticmethod(by_themselves)

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def plan_of(self, value: Any) -> plan.Node | None:
        if not isinstance(value, Live) or not hasattr(value, "_kept_views"):
            return None
        other: Any = value
        if other._engine is not self._engine and not agree(self._engine, other._engine):
            raise PlanError(
                f"{other._called()} is of another database\n"
                "  a query reads the tables of one; subscribe to the other and copy what it needs"
            )
        in_order = getattr(other, "_order", None)
        found: plan.Node = other.plan if in_order is None else in_order()
        return found

    def finds_keys(self, value: Any) -> bool:
        if not isinstance(value, Live):
            return False
        node = getattr(value, "plan", None)
        return (isinstance(node, plan.Table) and node.key is not None) or hasattr(value, "keys")

    def text_of(self, value: Any) -> Callable[[], Any] | None:
        text = getattr(value, "text", None) if isinstance(value, Live) else None
        return getattr(text, "function", None)

    def fold(self, name: Fold, value: Function | None) -> plan.Folded:
        if name == "Only":
            return _only(value)
        accumulator: Accumulator = PLAIN[name]()
        return plan.Folded(name, accumulator, value)

    def freed(self, node: plan.Node) -> plan.Node:
        return without_subqueries(node)

    def lateral(self, left: plan.Node, query: plan.Node, arguments: tuple[Expr, ...]) -> plan.Node:
        return lateral(left, query, arguments, of_no_rows=of_no_rows, canonical=canonical)

    def fixpoint(self, body: plan.Node, level: object, name: str) -> plan.Node:
        (found,) = smallest(plan.Fixpoint((body,), level, (name,), (None,), MOST_ROUNDS))
        return found


def without_subqueries(node: plan.Node) -> plan.Node:
    """The node with joins in the place of the sub-queries in its callables."""
    return freed(read_callables(node), of_no_rows=of_no_rows, canonical=canonical)


def of_no_rows(folded: plan.Folded) -> Any:
    """What an aggregate shows of no rows."""
    return folded.accumulator.result(folded.accumulator.zero())


def sources_of(node: plan.Node) -> list[Any]:
    """The relations that callables of a node name."""
    return [
        capture.original
        for function in functions(node)
        if isinstance(function, Lifted)
        for origin in function.origins
        for capture in origin.captures
        if isinstance(capture.original, Live) and hasattr(capture.original, "_kept_views")
    ]


def read(engine: Any, function: Opaque, shapes: Shapes) -> Lifted:
    """A callable of rows of these shapes that names relations."""
    made = read_callable(function, shapes, Comprehending(engine))[0]
    for part in walk(made.body):
        if isinstance(part, Constant) and isinstance(part.value, FunctionType):
            _check_called(function, part.value)
    return made


def read_inside(
    engine: Any, function: Opaque, shapes: Shapes, inside: Mapping[int, Rows]
) -> Lifted | None:
    """A callable of rows with others inside, some of whose parameters are these, as sub-queries of
    them; None of one that needs them as they are."""
    try:
        return read_callable(function, shapes, Comprehending(engine), inside)[0]
    except PlanError:
        return None


def _check_called(function: Opaque, called: FunctionType) -> None:
    """Refuse a function that is called as it is, and reads a row around the query."""
    for name in outer_values.captured(called):
        raise PlanError(
            f"{function.role}: {function} calls {called.__name__}, which reads {name!r}, a row "
            "around the query, and cannot be read itself\n"
            f"  write what it does as one expression, or give it {name!r} as an argument"
        )


def beside(engine: Any, node: plan.Node, rows: Rows) -> plan.Node:
    """The rows of a plan, with each of those that a query has for them."""
    whole = selected(rows, ())
    return Comprehending(engine).lateral(node, whole.node, whole.arguments)


def _only(value: Function | None) -> plan.Folded:
    """The value of a group, of which there must be no two that differ."""
    plus = opaque(_with, 2, "the value of a key")
    minus = opaque(_without, 2, "the value of a key")
    finish = opaque(_one, 1, "the value of a key")
    accumulator = UserAccumulator((), meaning(()), plus, minus, finish)
    return plan.Folded("Only", accumulator, value, (plus, minus, finish))


Held = tuple[tuple[Any, int], ...]
"""Values that differ, each with how often it is there."""


def _with(held: Held, value: Any) -> Held:
    return _moved(held, value, 1)


def _without(held: Held, value: Any) -> Held:
    return _moved(held, value, -1)


def _moved(held: Held, value: Any, weight: int) -> Held:
    for place, (other, count) in enumerate(held):
        if other is value or other == value:
            same = ((other, count + weight),) if count + weight else ()
            return (*held[:place], *same, *held[place + 1 :])
    return (*held, (value, weight))


def _one(held: Held) -> Any:
    if len(held) > 1:
        shown = ", ".join(f"{value!r:.60}" for value, _ in held[:3])
        raise DuplicateKeyError(
            f"{len(held)} rows have the same key, with the values {shown}\n"
            "  a dictionary would keep the last; have one value for each key"
        )
    return held[0][0] if held else None
