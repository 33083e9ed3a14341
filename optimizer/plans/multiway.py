"""Joins of three inputs or more, and semi-joins that compare one bound.

`multiway_of` joins three or more inputs in one operator.

    join b.dst == c.src and c.dst == a.src      join of three: a.dst == b.src,
      join a.dst == b.src                 ->      b.dst == c.src, c.dst == a.src
        edges a                                   edges a, edges b, edges c
        edges b
      edges c

Two inputs alone may have very many pairs, and few pairs match a row of the third. So no pairs are
stored: a changed row probes the indexes of the other inputs, the one with fewest matches first. If
the conditions form a cycle, as here, the matches of two inputs are intersected.

Sound:  the binary joins have the same equations and tests. If a callable raises, the engine runs
        the binary joins instead.
Needs:  keys, each part of a single input; inner joins; stored tables. Without a cycle, no
        conditions of several inputs, which would be evaluated last. At most 15 inputs: each is one
        nested loop.
Pays:   state is the inputs, a change costs the smaller of its sides, not the pairs of two inputs.
Source: worst-case optimal joins: Ngo, Porat, Re, Rudra, 2012; delta queries: Ammar, McSherry,
        Salihoglu, Joglekar, *Distributed Evaluation of Subgraph Queries*, 2018.

`bound_of` finds the only comparison of both sides in a semi-join or an anti-join.

    on  a.k == b.k and b.open and a.x < b.y

    key     a.k == b.k        decided by the indexes (`side_conditions.py`)
    left    value a.x
    right   test b.open, value b.y

A left row has a partner if its value is less than the greatest value of the right rows that have
its key: no pairs are tested. With `>` it is the least value.

Sound:  the engine compares only values of one family (`reactive.engine.collections.zset`), for
        which `<` is total and raises nothing, so that `not a < b` is `a >= b`; for other values it
        tests the pairs. A test after the comparison reads one row, with the same result, as the
        comparison cannot raise.
Needs:  a lifted predicate, whose other parts read one side each; no negative weights on the right,
        which could cancel the weights of other values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Call,
    Display,
    Expr,
    Lifted,
    Operation,
    Parameter,
    conjuncts,
    constant,
    reads,
    substitute,
    transform,
)
from optimizer.expressions.knowledge import Shapes, is_value, total
from optimizer.expressions.operand_checks import Comparison
from optimizer.expressions.simplification import holds_no_nan, is_no_tuple
from optimizer.expressions.text import needs, project_node
from optimizer.plans.forms import Key, unique_key
from optimizer.plans.join_lists import outputs
from optimizer.plans.properties import bindings, may_be_negative, once, row_shape, shapes
from optimizer.plans.side_conditions import (
    comparison_of,
    of_left,
    of_right,
    residual,
    side_conditions_of,
    side_of,
)
from optimizer.record import record

Side = tuple[Expr, Shapes]
"""A side of an equation, and the shapes of the rows that it reads."""
FEWEST = 3
MOST = 15
"""Inputs of a join that runs in one operator."""


@record
class Equation:
    """Expressions that are equal in the rows of two inputs of a join, each over its own row."""

    left: int
    of_left: Expr
    right: int
    of_right: Expr


@record
class MultiwayJoin:
    """Nested joins as one join of all their inputs, whose rows are parameters.

    `tests` are the tests of each input, over its own row, `residual` the tests of several; `row` is
    the row that the outermost join emits. `keys` are, for each input, the fields that no two of its
    rows have in common, if there are such.
    """

    equations: tuple[Equation, ...]
    tests: tuple[tuple[Expr, ...], ...]
    residual: tuple[Expr, ...]
    row: tuple[Expr, ...]
    is_cyclic: bool
    keys: tuple[Key, ...]


def multiway_of(node: plan.Join) -> MultiwayJoin | None:
    """Return a join with the joins below it as one, cached; None with fewer than three inputs."""
    return once(node, "multiway", _multiway)


def _multiway(node: plan.Join) -> MultiwayJoin | None:
    """Return a join as one of several inputs; None if their number, keys or weights do not allow
    it."""
    if may_be_negative(node):
        return None
    found = _flatten_joins(node)
    if found is None or not FEWEST <= len(found.relations) <= MOST:
        return None
    if not found.is_cyclic and found.residual:
        return None
    tests = tuple(map(tuple, found.tests))
    return MultiwayJoin(
        tuple(found.equations),
        tests,
        tuple(found.residual),
        found.row,
        found.is_cyclic,
        tuple(map(unique_key, found.relations)),
    )


def equations_between(
    join: plan.Join,
) -> tuple[Sequence[plan.Node], Sequence[Equation]] | None:
    """Return the inputs of nested joins, and equations between their rows; None if unknown."""
    found = _flatten_joins(join)
    return None if found is None else (found.relations, found.equations)


@dataclass
class _Flat:
    """Binary joins as one: rows of the inputs are parameters, in their order."""

    relations: list[plan.Node]
    row: tuple[Expr, ...]
    equations: list[Equation]
    tests: list[list[Expr]]
    residual: list[Expr]
    is_cyclic: bool = False

    def here(self, expr: Expr) -> Expr:
        """Rewrite an expression over the joined rows to the inputs."""
        return transform(substitute(expr, self.row), project_node)

    def join(self, node: plan.Join) -> bool:
        """Add the right side of a join; return False if that is not possible."""
        match, place = node.match, len(self.relations)
        conditions = side_conditions_of(node)
        if (match.on is not None and conditions is None) or self._may_raise():
            return False
        keys = [(match.left_key, match.right_key)] if match.left_key is not None else []
        steps = () if conditions is None else conditions.left
        own = () if conditions is None else conditions.right
        left = [k for k, _ in keys] + [s.function for s in steps if s.is_key]
        right = [k for _, k in keys] + [s.function for s in own if s.is_key]
        of_left, of_right = tuple(map(row_shape, self.relations)), (row_shape(node.right),)
        met = set()
        for number, (a, b) in enumerate(zip(left, right, strict=True)):
            if not isinstance(a, Lifted) or not isinstance(b, Lifted):
                return False
            parts = _parts_of_written if number < len(keys) else _parts_of_found
            for mine, theirs in parts((self.here(a.body), of_left), (b.body, of_right)):
                read = reads(mine)
                if len(read) != 1:
                    return False
                (other,) = read
                met.add(other)
                self.equations.append(Equation(other, _alone(mine), place, theirs))
        self.is_cyclic |= len(met) > 1
        for step in steps:
            if not step.is_key:
                self._test(self.here(step.function.body))
        self.tests.append([step.function.body for step in own if not step.is_key])
        self.relations.append(node.right)
        self.row = (*self.row, Parameter(place))
        if conditions is not None and conditions.residual is not None:
            self.residual += map(self.here, conjuncts(conditions.residual.body))
        return bool(met)

    def _may_raise(self) -> bool:
        """Return True if a test of the joined rows may raise, also without a match in another
        input."""
        of = tuple(map(row_shape, self.relations))
        return not all(total(expr, of) for expr in self.residual)

    def _test(self, expr: Expr) -> None:
        """Add a condition to the tests of its one input, or to the residual conditions of
        several."""
        read = reads(expr)
        if len(read) == 1:
            (place,) = read
            self.tests[place].append(_alone(expr))
        else:
            self.residual.append(expr)


def _flatten_joins(node: plan.Node) -> _Flat | None:
    """Return binary joins, with the selects between them, as one; None if they are too many."""
    above: list[plan.Node] = []
    while isinstance(node, plan.Join) or _passes_on(node):
        if len(above) > 2 * MOST:
            return None
        above.append(node)
        node = node.inputs()[0]
    if bindings(node) > 1:
        return None
    found = _Flat([node], (Parameter(0),), [], [[]], [])
    for part in above[::-1]:
        if isinstance(part, plan.Select | plan.Extend):
            found.row = tuple(map(found.here, outputs(part)))
        elif isinstance(part, plan.Join) and not found.join(part):
            return None
    return found


def _passes_on(node: plan.Node) -> bool:
    """Return True for a select of joined rows that computes nothing twice and cannot raise."""
    match node:
        case plan.Select(plan.Join() as join) | plan.Extend(plan.Join() as join):
            of = shapes(join)
            return all(is_value(made, of) and not needs(made, of) for made in outputs(node))
        case _:
            return False


def _parts_of_written(left: Side, right: Side) -> list[tuple[Expr, Expr]]:
    """Return the equal parts of two written keys: their items, if both are tuple displays.

    A tuple with a NaN in it matches nothing, itself included.
    """
    parts = _items_of(left[0], right[0])
    if parts or is_no_tuple(*left) or is_no_tuple(*right):
        return parts or [(left[0], right[0])]
    return [(Call(constant(_matched), (left[0],)), Call(constant(_matched), (right[0],)))]


def _parts_of_found(left: Side, right: Side) -> list[tuple[Expr, Expr]]:
    """Return the equal parts of two sides of an equation; tuples with the same NaN are equal."""
    parts = _items_of(left[0], right[0])
    if all(holds_no_nan(a, left[1]) or holds_no_nan(b, right[1]) for a, b in parts):
        return parts or [(left[0], right[0])]
    return [(left[0], right[0])]


def _items_of(left: Expr, right: Expr) -> list[tuple[Expr, Expr]]:
    """Return the pairs of items of two tuples of one length; empty for other expressions."""
    match left, right:
        case Display("tuple", mine), Display("tuple", theirs) if len(mine) == len(theirs):
            return list(zip(mine, theirs, strict=True))
        case _:
            return []


def _matched(key: Any) -> Any:
    """Return a key as written; NaN, which equals nothing, for a tuple with a NaN in it."""
    return math.nan if type(key) is tuple and any(part != part for part in key) else key


def _alone(expr: Expr) -> Expr:
    """Rewrite an expression over one input to a row of it."""
    return transform(expr, lambda e: Parameter(0) if isinstance(e, Parameter) else e)


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@record
class BoundSide:
    """The value of a row, and the tests of the predicate before and after the comparison."""

    before: tuple[Lifted, ...]
    value: Lifted
    after: tuple[Lifted, ...]


@record
class Bound:
    """Both sides of the comparison.

    The value of the left is less than the value of the right if `is_upper`, else greater; or equal
    if `closed`.
    """

    left: BoundSide
    right: BoundSide
    is_upper: bool
    closed: bool


def bound_of(join: plan.SemiJoin | plan.AntiJoin) -> Bound | None:
    """Return the only comparison that decides if a row has a partner, cached; None if there is
    none."""
    return once(join, "bound", _find_bound)


def _find_bound(join: plan.SemiJoin | plan.AntiJoin) -> Bound | None:
    """Return the only comparison of both sides in a semi- or anti-join; None if there is not
    one."""
    rest, count = residual(join), bindings(join.left)
    if not isinstance(rest, Lifted) or may_be_negative(join.right):
        return None
    comparison: Comparison | None = None
    tests: dict[tuple[str, bool], list[Lifted]] = {}
    for test in conjuncts(rest.body):
        found, side = comparison_of(_positive(test), count), side_of(test, count)
        if found is not None and comparison is None:
            comparison = found
        elif side is not None:
            made = (of_left if side == "left" else of_right)(rest, test, count)
            tests.setdefault((side, comparison is None), []).append(made)
        else:
            return None
    if comparison is None:
        return None
    values = of_left(rest, comparison.left, count), of_right(rest, comparison.right, count)
    left, right = (
        BoundSide(tuple(tests.get((side, True), ())), value, tuple(tests.get((side, False), ())))
        for side, value in zip(("left", "right"), values, strict=True)
    )
    return Bound(left, right, comparison.left_is_low, comparison.closed)


def _positive(test: Expr) -> Expr:
    """Return the opposite of a negated comparison, equal in a total order; or any other `test`."""
    match test:
        case Operation("not", (Operation(symbol) as compared,)) if symbol in OPPOSITE:
            return Operation(OPPOSITE[symbol], compared.operands)
        case _:
            return test
