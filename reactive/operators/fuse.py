"""Make the generated operators: the loops, and beside each the plain operators it stands for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeGuard, TypeVar

from optimizer import plan
from optimizer.expr import Expr, Function, Lifted
from optimizer.plans.early import residual
from optimizer.plans.factors import NO_FACTORS, Factors, Sums
from optimizer.plans.multiway import Wide
from optimizer.plans.properties import bindings, is_interned, row_shape, shapes
from optimizer.traverse import read_functions
from reactive.codegen.body import Plan, row_names
from reactive.codegen.itinerary import path_from
from reactive.codegen.taker import ToCounts, ToList
from reactive.collections.index import Key
from reactive.collections.zset import Pair, Row
from reactive.operators.aggregate import Aggregate
from reactive.operators.distinct import Distinct
from reactive.operators.folds import CountFold
from reactive.operators.generated.alone import GroupingOfOneSum, alone
from reactive.operators.generated.both_sides import pair_loops
from reactive.operators.generated.circling import Circling, circle_loop, counts_only, edge
from reactive.operators.generated.factored import Factored, GroupingOfSums, Sides, Term
from reactive.operators.generated.grouped import Grouped, Grouping
from reactive.operators.generated.joined import Joined, Pairing, join_loops
from reactive.operators.generated.keyed import KeyCode, KeyLoop, key_parts
from reactive.operators.generated.linear import Linear, delta_loop
from reactive.operators.generated.paths import Joined as WideJoined
from reactive.operators.generated.paths import Paths, joined_plan, path_loops
from reactive.operators.generated.single import GroupingOfOne
from reactive.operators.generated.summing import Summing, SummingOfOne
from reactive.operators.index_by import IndexBy
from reactive.operators.key_by import KeyBy
from reactive.operators.loops import Below, all_read, inputs_of_wide
from reactive.operators.plain import (
    Side,
    homes,
    plain_aggregate,
    plain_join,
    plain_operator,
    side_functions,
    side_key,
)
from reactive.operators.sums_by import SumsBy

Rows = Callable[[Sequence[Any]], Sequence[Any]]
Make = Callable[[], Any]
G = TypeVar("G", bound=Grouping)
S = TypeVar("S", bound=GroupingOfSums)


def looped(node: plan.Node, below: Below) -> Make:
    """The operator of a chain, or of what it feeds."""
    match node:
        case plan.Aggregate():
            return grouped(node, below)
        case plan.Distinct() if below.chain:
            return lambda: Distinct(linear(below))
        case plan.Distinct():
            return Distinct
        case _:
            return lambda: linear(below)


def linear(below: Below) -> Linear:
    """The operator of a chain."""
    called = read_functions(*below.chain)

    def made(taker: type[ToList | ToCounts]) -> Callable[..., Any]:
        todo = below.plan()
        takes = ToList(todo, batch=True) if taker is ToList else ToCounts(todo)
        return delta_loop("delta", todo, called, takes, batch=True)[0]

    todo = below.plan()
    loop, text = delta_loop("delta", todo, called, ToList(todo))
    return Linear(loop, _Lazy(below.chain).run, text, made)


def keys_of(
    below: Below, side: Side, arguments: int, *, generate: bool, late: bool = False
) -> tuple[Make, Rows]:
    """How to make what keys the rows of a chain, and these rows of those of the base.

    What is late gets the changes of several commits at once, in which a row may have gone and an
    equal one come: it goes by equality.
    """
    key = side_key(side, arguments)
    identity = is_interned(below.top) and not late
    if generate and all_read(side_functions(side)):
        return _keyed(below, side, arguments, key, identity=identity)
    return (lambda: KeyBy(key, identity=identity)), (lambda rows: rows)


def _keyed(
    below: Below, side: Side, arguments: int, key: Callable[[Row], Key] | None, *, identity: bool
) -> tuple[Make, Rows]:
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

    called = read_functions(*below.chain, node)

    def made(plain: Aggregate, kind: type[Grouping]) -> tuple[Callable[..., Any], str]:
        todo = below.plan()
        takes = _grouping(node, todo, plain, kind)
        return delta_loop("groups, before, delta", todo, called, takes)

    def made_one(plain: Aggregate) -> Callable[..., Any] | None:
        fits = GroupingOfOne.fits(below.plan(), plain.folds)
        return made(plain, GroupingOfOne)[0] if fits else None

    def make() -> Grouped:
        plain = plain_aggregate(node)
        loop, text = made(plain, Grouping)
        carefully = _Lazy(below.chain).run
        return Grouped(plain, loop, carefully, text, made=lambda: made_one(plain))

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
        rest, of = _residual(join), shapes(join)
        plain = plain_join(join, left, right)
        operators = _Lazy(chain)
        pairing = Pairing(left, right)

        def carefully(*deltas: Sequence[Any]) -> Sequence[Pair]:
            return operators.run(plain.step(*deltas))

        count = bindings(join.left)
        if isinstance(node, plan.Aggregate):
            aggregate = plain_aggregate(node)
            loops, text = join_loops(
                count, of, rest, chain, lambda todo: _grouping(node, todo, aggregate)
            )
            return Grouped(aggregate, loops, carefully, text, pairing)
        loops, text = join_loops(count, of, rest, chain, ToList)
        contents = lambda: operators.run(list(plain.contents()))  # noqa: E731
        return Joined(pairing, loops, carefully, contents, text)

    return make


def _residual(join: plan.Join | plan.Product) -> Lifted | None:
    rest = residual(join)
    assert rest is None or isinstance(rest, Lifted)
    return rest


def _asked(join: plan.Join | plan.Product) -> tuple[Expr, ...]:
    rest = _residual(join)
    return () if rest is None else (rest.body,)


def sums_of_rows(below: Below, side: Side, arguments: int, sums: Sums, owner: plan.Node) -> Make:
    """What keeps the rows of a chain as sums by a key."""

    called = [*read_functions(*below.chain), *(f for f in side_functions(side) if _is_read(f))]

    def planned() -> Plan:
        todo = below.plan()
        if arguments < len(todo.row):
            todo.row = (todo.value(),)  # the right side of a join is one value
        return todo

    def make() -> SumsBy:
        todo = planned()
        loop, text = delta_loop("delta", todo, called, _summing(todo, side, sums))
        width, by_group = len(sums.values), bool(sums.groups)
        one = None if by_group or todo.makes_several else made_one
        return SumsBy(loop, width, owner, text, by_group=by_group, one=one)

    def made_one() -> Callable[..., Any]:
        todo = planned()
        return delta_loop("sums, delta", todo, called, _summing(todo, side, sums, SummingOfOne))[0]

    return make


def sums_of_pairs(
    join: plan.Join | plan.Product,
    chain: tuple[plan.Node, ...],
    side: Side,
    arguments: int,
    sums: Sums,
    sides: tuple[Any, Any],
    owner: plan.Node,
) -> Make:
    """What keeps the pairs of a join, after a chain, as sums by a key."""

    def make() -> SumsBy:
        below = sums.below
        called = [*read_functions(join, *chain)]
        written = side[0] is not None

        def taker(todo: Plan) -> Summing:
            if below is None:
                if arguments < len(todo.row):
                    todo.row = (todo.value(),)  # the right side of a join is one value
                return _summing(todo, side, sums)
            parts = list(map(todo.take, below.parts))
            values = [_term(todo, v) for v in below.values if v is not None]
            count = len(parts) - len(sums.groups)
            return Summing(parts[:count], parts[count:], values, todo, is_written=written)

        todo = () if below is not None else chain
        factors = below or replace(NO_FACTORS, tests=_asked(join))
        loop, text = _pair_loops(join, todo, factors, called, taker, counts=False)
        width = len(sums.values)
        look_ups = Sides(*sides).look_ups
        return SumsBy(loop, width, owner, text, by_group=bool(sums.groups), look_ups=look_ups)

    return make


def factored(
    node: plan.Aggregate,
    join: plan.Join | plan.Product,
    factors: Factors,
    sides: tuple[Any, Any],
) -> Make:
    """The operator of an aggregate over a join of which sums are kept."""

    def make() -> Factored:
        def taker(todo: Plan, kind: type[S] = GroupingOfSums) -> S:  # type: ignore[assignment]
            given = zip(node.aggregates, factors.values, strict=True)
            folds = [(a.fold, None if value is None else _term(todo, value)) for a, value in given]
            key = None if node.key is None else todo.take(factors.parts[0])
            return kind(key, folds, homes(node), row=node.row)

        called, both = read_functions(join, node), Sides(*sides)
        loop, text = _pair_loops(join, (), factors, called, taker, counts=True)
        of = shapes(join)
        names = row_names(called, len(of))
        folds = [folded.fold for folded in node.aggregates]
        one = alone(names, of, factors, lambda todo: taker(todo, GroupingOfOneSum), folds, both)
        return Factored(plain_aggregate(node), loop, text, both, node, one)

    return make


def wide(
    join: plan.Join,
    of: Wide,
    node: plan.Node,
    chain: tuple[plan.Node, ...],
    indexes: dict[Any, IndexBy],
) -> Make:
    """The operator of joins as one, with the chain above and what the chain feeds."""

    def make() -> Any:
        paths = [path_from(place, of) for place in range(len(of.tests))]
        relations = inputs_of_wide(join, of)
        shown = tuple(row_shape(relation) for relation in relations)
        names = tuple(f"row{place}" for place in range(len(relations)))
        if not isinstance(node, plan.Aggregate):
            loop, text = path_loops(names, shown, of, paths, chain, ToList)
            return WideJoined(Paths(paths, indexes, is_filled=True), loop, text, join)
        plain = plain_aggregate(node)
        loop, text = path_loops(
            names, shown, of, paths, chain, lambda todo: _grouping(node, todo, plain)
        )
        return Factored(plain, loop, text, Paths(paths, indexes), join)

    return make


def around(
    join: plan.Join,
    of: Wide,
    node: plan.Aggregate,
    chain: tuple[plan.Node, ...],
    inputs: Sequence[Below],
) -> Make | None:
    """The operator of an aggregate of joins as one, of a base with itself in a circle.

    None if it is no circle, or if something is read of the joined rows.
    """
    first = inputs[0]
    above = joined_plan(of, chain, tuple(row_shape(below.top) for below in inputs))
    if not GroupingOfOne.fits(above, [folded.fold for folded in node.aggregates]):
        return None
    plain = plain_aggregate(node)
    taker = _grouping(node, above, plain, GroupingOfOne)
    found = edge(of, [below.plan() for below in inputs]) if counts_only(above, taker) else None
    if found is None:
        return None

    def make() -> Circling:
        called = read_functions(*first.chain)
        loop, text = circle_loop(called, found, above, taker)
        return Circling(plain_aggregate(node), loop, text, join)

    return make


def _pair_loops(
    join: plan.Join | plan.Product,
    chain: tuple[plan.Node, ...],
    factors: Factors,
    called: Sequence[Lifted],
    taker: Callable[[Plan], Any],
    *,
    counts: bool,
) -> tuple[Callable[..., Any], str]:
    of = shapes(join)
    names = row_names(called, len(of))
    return pair_loops(names, of, factors, chain, taker, counts=counts)


def _summing(todo: Plan, side: Side, sums: Sums, kind: type[Summing] = Summing) -> Summing:
    written, steps = side
    assert written is None or isinstance(written, Lifted)
    for test in sums.tests:
        todo.test(test)
    key = key_parts(todo, written, steps)
    groups = list(map(todo.take, sums.groups))
    values = [Term(todo.take(value)) for value in sums.values]
    return kind(key, groups, values, todo, is_written=written is not None)


def _term(todo: Plan, value: Expr | tuple[Expr, Expr]) -> Term:
    factors = value if isinstance(value, tuple) else (value,)
    return Term(*map(todo.take, factors))


def _is_read(function: Function | None) -> TypeGuard[Lifted]:
    return isinstance(function, Lifted)


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


def _grouping(
    node: plan.Aggregate,
    todo: Plan,
    plain: Aggregate,
    kind: type[G] = Grouping,  # type: ignore[assignment]
) -> G:
    folds: list[tuple[Any, Expr | None]] = []
    for folded in node.aggregates:
        if isinstance(folded.fold, CountFold):
            folds.append((folded.fold, None))
            continue
        value = todo.value() if folded.value is None else todo.take(_body(folded.value))
        folds.append((folded.fold, value))
    key = None if node.key is None else todo.take(_body(node.key))
    is_empty = plain.is_empty if plain.keeps_debts else None
    return kind(key, folds, homes(node), is_empty=is_empty, row=node.row)


def _body(function: Any) -> Expr:
    assert isinstance(function, Lifted)
    return function.body
