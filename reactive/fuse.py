"""Make the generated operators: the loops, and beside each the plain operators it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from optimizer import plan
from optimizer.expr import Expr, Lifted
from optimizer.properties import bindings, row_shape, shapes
from optimizer.traverse import functions
from reactive.codegen import Values, build
from reactive.folds import CountFold
from reactive.generated.body import Body, Plan, row_names
from reactive.generated.grouped import Grouped, Grouping
from reactive.generated.joined import Joined, Pairing, ToList, join_loops, plain_chain
from reactive.generated.keyed import KeyCode, KeyLoop
from reactive.generated.linear import Linear, linear_loop
from reactive.index import Key
from reactive.operators.index_by import IndexBy
from reactive.operators.key_by import KeyBy
from reactive.plain import Side, plain_aggregate, plain_join, plain_operator
from reactive.zset import Pair, Row

Rows = Callable[[Sequence[Any]], Sequence[Any]]
Make = Callable[[], Any]


class Below(Protocol):
    """A chain of linear nodes over a base."""

    @property
    def chain(self) -> tuple[plan.Node, ...]: ...
    @property
    def base(self) -> plan.Node: ...


def linear(below: Below) -> Make:
    """The operator of a chain."""

    def make() -> Linear:
        count = bindings(below.base)
        loop, text = linear_loop(Plan(below.chain, count, shapes(below.base)), below.chain, count)
        return Linear(loop, _Lazy(below.chain).run, text)

    return make


def keyed(
    below: Below, side: Side, arguments: int, key: Callable[[Row], Key] | None, *, identity: bool
) -> tuple[Make, Rows]:
    """What keys the rows of a chain, and how to make these rows of those of the base."""
    base, chain = below.base, below.chain
    operators: list[Any] = []

    def rows(delta: Sequence[Any]) -> Sequence[Any]:
        if not operators:
            operators.extend(_plain(chain))
        return plain_chain(operators, delta)

    def make() -> KeyLoop:
        todo = Plan(chain, bindings(base), shapes(base))
        if arguments < len(todo.row):
            todo.row = (todo.value(),)  # the right side of a join is one value
        written, steps = side
        assert written is None or isinstance(written, Lifted)
        code = KeyCode(chain, bindings(base), todo, written, steps)
        return KeyLoop(code, KeyBy(key, identity=identity), rows, identity=identity)

    return make, rows


def grouped(node: plan.Aggregate, below: Below) -> Make:
    """The operator of an aggregate over a chain."""

    def make() -> Grouped:
        count = bindings(below.base)
        todo = Plan(below.chain, count, shapes(below.base))
        grouping = _grouping(node, todo)
        values = Values()
        names = row_names([f for n in (*below.chain, node) for f in _read(n)], count)
        body = Body(values, names, todo.shapes, 2)
        body.expect([*(act.expr for act in todo.acts), *grouping.exprs()])
        if count > 1:
            body.line(f"{', '.join(names)} = row")
        body.write(todo.acts)
        grouping.write(body, "weight")
        lines = ["def step(groups, before, delta):", *grouping.prologue()]
        text = "\n".join(
            [*lines, "    for row, weight in delta:", *body.lines, *grouping.epilogue(), ""]
        )
        values.by_name |= grouping.bound
        operators = _Lazy(below.chain)
        return Grouped(plain_aggregate(node), build("step", text, values), operators.run, text)

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


class _Lazy:
    """The plain operators of a chain, made when they are first needed."""

    def __init__(self, chain: tuple[plan.Node, ...]) -> None:
        self._chain = chain
        self._operators: list[Any] | None = None

    def run(self, delta: Sequence[Pair]) -> Sequence[Pair]:
        if self._operators is None:
            self._operators = _plain(self._chain)
        return plain_chain(self._operators, delta)


def _plain(chain: tuple[plan.Node, ...]) -> list[Any]:
    return [plain_operator(node)[0]() for node in chain]


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


def _read(node: plan.Node) -> list[Lifted]:
    return [f for f in functions(node) if isinstance(f, Lifted)]
