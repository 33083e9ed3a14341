"""Make the generated operators: the loops, and beside each the plain operators it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import Expr, Lifted
from optimizer.properties import bindings, row_shape, shapes
from optimizer.traverse import read_functions
from reactive.folds import CountFold
from reactive.generated.body import Plan
from reactive.generated.grouped import Grouped, Grouping
from reactive.generated.joined import Joined, Pairing, join_loops
from reactive.generated.keyed import KeyCode, KeyLoop
from reactive.generated.linear import Linear, delta_loop
from reactive.generated.taker import ToList
from reactive.index import Key
from reactive.operators.index_by import IndexBy
from reactive.operators.key_by import KeyBy
from reactive.plain import Side, plain_aggregate, plain_join, plain_operator
from reactive.zset import Pair, Row

Rows = Callable[[Sequence[Any]], Sequence[Any]]
Make = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Below:
    """What a node reads: a chain of linear nodes, the first to see a row first, over a base."""

    chain: tuple[plan.Node, ...]
    base: plan.Node

    @property
    def top(self) -> plan.Node:
        """The node whose rows come out."""
        return self.chain[-1] if self.chain else self.base

    def plan(self) -> Plan:
        """What a loop over the rows of the base has to do."""
        return Plan(self.chain, bindings(self.base), shapes(self.base))


def linear(below: Below) -> Make:
    """The operator of a chain."""

    def make() -> Linear:
        todo = below.plan()
        loop, text = delta_loop("delta", todo, read_functions(*below.chain), ToList(todo))
        return Linear(loop, _Lazy(below.chain).run, text)

    return make


def keyed(
    below: Below, side: Side, arguments: int, key: Callable[[Row], Key] | None, *, identity: bool
) -> tuple[Make, Rows]:
    """What keys the rows of a chain, and how to make these rows of those of the base."""
    rows = _Lazy(below.chain).run

    def make() -> KeyLoop:
        todo = below.plan()
        if arguments < len(todo.row):
            todo.row = (todo.value(),)  # the right side of a join is one value
        written, steps = side
        assert written is None or isinstance(written, Lifted)
        code = KeyCode(below.chain, todo, written, steps)
        return KeyLoop(code, KeyBy(key, identity=identity), rows, identity=identity)

    return make, rows


def grouped(node: plan.Aggregate, below: Below) -> Make:
    """The operator of an aggregate over a chain."""

    def make() -> Grouped:
        todo = below.plan()
        called = read_functions(*below.chain, node)
        loop, text = delta_loop("groups, before, delta", todo, called, _grouping(node, todo))
        return Grouped(plain_aggregate(node), loop, _Lazy(below.chain).run, text)

    return make


def joined(
    join: plan.Join | plan.Product,
    node: plan.Node,
    chain: tuple[plan.Node, ...],
    left: IndexBy,
    right: IndexBy,
) -> Make:
    """The operator of a join, with the chain above it and what the chain feeds."""

    def make() -> Any:
        match = plan.Match() if isinstance(join, plan.Product) else join.match
        rest = match.on if match.early is None else match.early.rest
        assert rest is None or isinstance(rest, Lifted)
        of = (*shapes(join.left), row_shape(join.right))
        plain = plain_join(join, match, left, right)
        operators = _Lazy(chain)
        pairing = Pairing(left, right)

        def carefully(*deltas: Sequence[Any]) -> Sequence[Pair]:
            return operators.run(plain.step(*deltas))

        count = bindings(join.left)
        if isinstance(node, plan.Aggregate):
            loops, text = join_loops(count, of, rest, chain, lambda todo: _grouping(node, todo))
            aggregate = plain_aggregate(node)
            return Grouped(aggregate, loops, carefully, text, pairing)
        loops, text = join_loops(count, of, rest, chain, ToList)
        contents = lambda: operators.run(list(plain.contents()))  # noqa: E731
        return Joined(pairing, loops, carefully, contents, text)

    return make


def chained(chain: tuple[plan.Node, ...]) -> Rows:
    """What the plain operators of a chain make of a delta."""
    return _Lazy(chain).run


class _Lazy:
    """The plain operators of a chain, made when they are first needed."""

    def __init__(self, chain: tuple[plan.Node, ...]) -> None:
        self._chain = chain
        self._operators: list[Any] | None = None

    def run(self, delta: Sequence[Pair]) -> Sequence[Pair]:
        """What they make of a delta, one after the other."""
        if self._operators is None:
            self._operators = [plain_operator(node)[0]() for node in self._chain]
        for operator in self._operators:
            delta = operator.step(delta)
        return delta


def _grouping(node: plan.Aggregate, todo: Plan) -> Grouping:
    folds: list[tuple[Any, Expr | None]] = []
    for folded in node.aggregates:
        if isinstance(folded.fold, CountFold):
            folds.append((folded.fold, None))
            continue
        value = todo.value() if folded.value is None else todo.take(_body(folded.value))
        folds.append((folded.fold, value))
    key = None if node.key is None else todo.take(_body(node.key))
    return Grouping(key, folds)


def _body(function: Any) -> Expr:
    assert isinstance(function, Lifted)
    return function.body
