"""Joins as a list of inputs and conditions, as FROM and WHERE of SQL have them.

    join x.k == y.k and y.n == z.n           inputs x, z, y
      product                        ->      tests  x.k == y.k, y.n == z.n
        x                                    row    x, z, y
        z
      y

Sound:  the joins below the highest raise nothing, nor does what is computed between them, so that
        their tests can be asked along with those of the highest, and in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Expr,
    Lifted,
    Parameter,
    conjuncts,
    one_value,
    origins,
    reads,
    row_names,
)
from optimizer.expressions.compose import over
from optimizer.expressions.knowledge import Shapes, is_value, total
from optimizer.plans.extended import outputs
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.side_conditions import has_keys, pair_shapes
from optimizer.record import record


@record
class JoinList:
    """Inputs that are joined, and what is asked of their rows, in this order.

    All bindings of all inputs are the parameters, those of an input from its place in `starts` on;
    `row` is what the joins emit. `without_keys` of the joins look at every pair.
    """

    inputs: tuple[plan.Node, ...]
    starts: tuple[int, ...]
    row: tuple[Expr, ...]
    tests: tuple[Expr, ...]
    names: tuple[str, ...]
    origins: tuple[Opaque, ...]
    without_keys: int

    @property
    def of(self) -> Shapes:
        """What is known of all bindings."""
        known = {
            flat: shape
            for place, source in enumerate(self.inputs)
            for flat, shape in zip(self.places(place), shapes(source), strict=True)
        }
        return tuple(map(known.get, range(len(self.names))))

    def places(self, place: int) -> range:
        """The bindings of one input."""
        start = self.starts[place]
        return range(start, start + bindings(self.inputs[place]))

    def input_of(self) -> dict[int, int]:
        """The input that each binding is of."""
        return {flat: n for n in range(len(self.inputs)) for flat in self.places(n)}

    def without(self, place: int) -> JoinList:
        """The same but for an input and what is asked of it. What is emitted is not known then."""
        gone = set(self.places(place))
        others = [n for n in range(len(self.inputs)) if n != place]
        return replace(
            self,
            inputs=tuple(self.inputs[n] for n in others),
            starts=tuple(self.starts[n] for n in others),
            tests=tuple(test for test in self.tests if gone.isdisjoint(reads(test))),
            row=(),
        )


def join_list(node: plan.Node, names: Sequence[str] = ()) -> JoinList | None:
    """Joins and products as a list; None of anything else. `names` are those that a callable above
    has for the bindings of their rows."""
    if not _is_listed(node, is_highest=True):
        return None
    found = _Gathered()
    row = found.gather(node, is_highest=True)
    found.name(row, names)
    count = sum(map(bindings, found.inputs))
    every = tuple(found.names.get(flat, f"row{flat}") for flat in range(count))
    return JoinList(
        tuple(found.inputs),
        tuple(accumulate([0, *map(bindings, found.inputs[:-1])])),
        row,
        tuple(found.tests),
        every if len(set(every)) == len(every) else row_names(len(every)),
        origins(*found.functions),
        found.without_keys,
    )


def _is_listed(node: plan.Node, *, is_highest: bool) -> bool:
    match node:
        case plan.Product() | plan.Join(match=plan.Match(None, None, None)):
            return True
        case plan.Extend(source):
            of, made = shapes(source), outputs(node)
            return all(is_value(expr, of) and total(expr, of) for expr in made)
        case plan.Join(match=plan.Match(None, None, Lifted(body))):
            return is_highest or total(body, pair_shapes(node))
        case _:
            return False


@dataclass
class _Gathered:
    """What has been gathered of a tree of joins, from the left to the right."""

    inputs: list[plan.Node] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    tests: list[Expr] = field(default_factory=list)
    functions: list[Lifted] = field(default_factory=list)
    without_keys: int = 0

    def gather(self, node: plan.Node, *, is_highest: bool) -> tuple[Expr, ...]:
        """Gather what is below a node; the bindings of its rows, in terms of all."""
        joins: list[plan.Join | plan.Product | plan.Extend] = []
        while _is_listed(node, is_highest=is_highest and not joins):
            assert isinstance(node, plan.Join | plan.Product | plan.Extend)
            joins.append(node)
            node = node.inputs()[0]
        row = self._input(node)
        for join in reversed(joins):
            if isinstance(join, plan.Extend):
                row = tuple(over(expr, row) for expr in outputs(join))
                continue
            inside = self.gather(join.right, is_highest=False)
            row = (*row, one_value(inside))
            self.without_keys += not has_keys(join)
            on = join.match.on if isinstance(join, plan.Join) else None
            if isinstance(on, Lifted):
                self.functions.append(on)
                self.name(row, on.names)
                self.tests += [over(test, row) for test in conjuncts(on.body)]
        return row

    def name(self, row: Sequence[Expr], names: Sequence[str]) -> None:
        """Call bindings as a callable does, but those that have a name."""
        for expr, name in zip(row, names, strict=False):
            if isinstance(expr, Parameter):
                self.names.setdefault(expr.index, name)

    def _input(self, node: plan.Node) -> tuple[Expr, ...]:
        start = sum(map(bindings, self.inputs))
        self.inputs.append(node)
        return tuple(Parameter(start + n) for n in range(bindings(node)))
