"""Joins as a list of inputs and conditions, and rows of `Extend` as expressions over their input.

`join_list` writes joins as a list of inputs and conditions, like FROM and WHERE of SQL.

    join x.k == y.k and y.n == z.n           inputs x, z, y
      product                        ->      tests  x.k == y.k, y.n == z.n
        x                                    row    x, z, y
        z
      y

Sound:  the joins below the highest, and the columns computed between them, raise nothing, so that
        their tests can be evaluated with the tests of the highest, in any order.

`outputs` returns the bindings of an `Extend` as expressions, and `extend_of` builds one of them:

    Extend(R, (1,), (f,))      (r1, f(r0, r1))      as one value: the row of a select

A select is an extend with one binding: these functions take both.

`forwards` finds clauses that pass a value of the recursive row on to the derived row.

    select Edge(r.src, e.dst)
      join r.dst == e.src            a derived row has the `src` of the recursive row below it
        recursive r
        table edges

Sound:  for all rows of the inputs, the expression has the same value for a derived row and for the
        recursive row that it was derived from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, takewhile

from optimizer import plan
from optimizer.callables.opaque import Opaque
from optimizer.expr import (
    Apply,
    Expr,
    Function,
    Lifted,
    Parameter,
    all_parameters,
    conjuncts,
    one_value,
    origins,
    reads,
    row_names,
    substitute,
)
from optimizer.expressions.knowledge import Shapes, is_value, total
from optimizer.expressions.text import compose, first, is_too_long, needs, over, surely
from optimizer.plans import clauses
from optimizer.plans.properties import bindings, shapes
from optimizer.plans.side_conditions import calls_may_raise, has_keys, pair_shapes
from optimizer.record import record


@record
class JoinList:
    """Inputs that are joined, and the tests of their rows, in this order.

    The parameters are all bindings of all inputs; the bindings of an input begin at its place in
    `starts`. `row` is the row that the joins emit. `without_keys` of the joins look at every pair.
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
        """The shapes of all bindings, by their positions; None for a position that no input has."""
        known = {
            flat: shape
            for place, source in enumerate(self.inputs)
            for flat, shape in zip(self.places(place), shapes(source), strict=True)
        }
        return tuple(map(known.get, range(len(self.names))))

    def places(self, place: int) -> range:
        """Return the positions of the bindings of the input at `place`."""
        start = self.starts[place]
        return range(start, start + bindings(self.inputs[place]))

    def input_of(self) -> dict[int, int]:
        """Map each binding to its input."""
        return {flat: n for n in range(len(self.inputs)) for flat in self.places(n)}

    def drop_input(self, place: int) -> JoinList:
        """Return the list without the input at `place` and the tests that read it.

        The `row` of the new list is empty.
        """
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
    """Return joins and products as a list; None for other nodes.

    `names` are the names of their bindings in a callable above.
    """
    if not _is_listed(node, is_highest=True):
        return None
    found = _JoinGatherer()
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
    """Return True if a node can be part of a join list; its tests must not raise below the
    highest."""
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
class _JoinGatherer:
    """The parts of a tree of joins, from left to right."""

    inputs: list[plan.Node] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    tests: list[Expr] = field(default_factory=list)
    functions: list[Lifted] = field(default_factory=list)
    without_keys: int = 0

    def gather(self, node: plan.Node, *, is_highest: bool) -> tuple[Expr, ...]:
        """Gather the joins below a node; return the bindings of its rows in terms of all
        bindings."""
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
        """Name bindings as a callable does, unless they have a name."""
        for expr, name in zip(row, names, strict=False):
            if isinstance(expr, Parameter):
                self.names.setdefault(expr.index, name)

    def _input(self, node: plan.Node) -> tuple[Expr, ...]:
        """Add a node to the inputs, and return the parameters that read its bindings."""
        start = sum(map(bindings, self.inputs))
        self.inputs.append(node)
        return tuple(Parameter(start + n) for n in range(bindings(node)))


def outputs(node: plan.Extend | plan.Select) -> tuple[Expr, ...]:
    """Return each binding of the rows, in terms of the bindings of the input."""
    count = bindings(node.input)
    if isinstance(node, plan.Select):
        return (_body_of_column(node.function, count),)
    return (
        *map(Parameter, node.keep),
        *[_body_of_column(column, count) for column in node.columns],
    )


def callable_of_row(node: plan.Extend) -> Lifted:
    """Return a callable of the input's bindings that makes a row, as one value."""
    return _callable_below(node, one_value(outputs(node)))


def composed_over(outer: Lifted, below: plan.Extend | plan.Select) -> Lifted | None:
    """Compose a callable of a node's rows with the node, to a callable of the rows below.

    All columns of the node are evaluated. Return None if one has a cost, or the result is too long.
    """
    if isinstance(below, plan.Select):
        f = below.function
        return compose(outer, f, shapes(below.input)) if isinstance(f, Lifted) else None
    made, of = outputs(below), shapes(below.input)
    if not all(is_value(expr, of) for expr in made):
        return None
    body = _after(made, below, [over(outer.body, made)])[0]
    return None if is_too_long(body) else _callable_below(below, body, (outer,))


def fuse_extend(node: plan.Extend, below: plan.Extend | plan.Select) -> plan.Extend | None:
    """Fuse an extend with the extend or select below.

    Return None if an expression would be evaluated twice, or is too long.
    """
    made, of = outputs(below), shapes(below.input)
    if not all(isinstance(column, Lifted) for column in node.columns):
        return None
    costly = [place for place, expr in enumerate(made) if not is_value(expr, of)]
    if not _stay(node, costly):
        return None
    every = _after(made, below, [over(expr, made) for expr in outputs(node)])
    if any(map(is_too_long, every)):
        return None
    of_each: list[tuple[Function, ...]] = [()] * len(node.keep)
    of_each += [(column,) for column in node.columns]
    read = [_callable_below(below, *each) for each in zip(every, of_each, strict=True)]
    return extend_of(below.input, read, node.names)


def extend_of(
    source: plan.Node, made: Sequence[Lifted], names: tuple[str | None, ...] = ()
) -> plan.Extend:
    """Return the node that computes the bindings `made` of the bindings of the source."""
    bodies = takewhile(_is_binding, [f.body for f in made])
    keep = tuple(expr.index for expr in bodies if isinstance(expr, Parameter))
    return plan.Extend(source, keep, tuple(made[len(keep) :]), names)


def _is_binding(expr: Expr) -> bool:
    return isinstance(expr, Parameter)


def _stay(node: plan.Extend, places: Sequence[int]) -> bool:
    """Return True if bindings of the rows below stay, in their order, and no column reads them."""
    kept = [place for place in node.keep if place in places]
    read = [reads(column.body) for column in node.columns if isinstance(column, Lifted)]
    return kept == list(places) and not any(map(set(places).intersection, read))


def _after(made: Sequence[Expr], below: plan.Extend | plan.Select, every: list[Expr]) -> list[Expr]:
    """Evaluate in `every` first the parts of `made` that may raise.

    The list `every` is changed, and returned. Parts that `every` evaluates anyway are left out.
    """
    of = shapes(below.input)
    asked = {part for expr in every for part in surely(expr)}
    needed = [need for expr in made for need in needs(expr, of) if need not in asked]
    place = next((n for n, expr in enumerate(every) if not _is_binding(expr)), 0)
    every[place] = first(tuple(dict.fromkeys(needed)), every[place])
    return every


def _callable_below(
    node: plan.Extend | plan.Select, body: Expr, more: Sequence[Function] = ()
) -> Lifted:
    """Return a callable of the bindings below a node."""
    count = bindings(node.input)
    own = (node.function,) if isinstance(node, plan.Select) else node.columns
    read = (f.names for f in own if isinstance(f, Lifted))
    names = next((names for names in read if len(names) == count), row_names(count))
    return Lifted(body, names, origins(*own, *more), count)


def _body_of_column(column: Function, count: int) -> Expr:
    if isinstance(column, Opaque):
        return Apply(column, all_parameters(count))
    return column.body


def ways_of(body: plan.Node) -> list[plan.Node]:
    """Return the nodes whose union is a body: the ways to derive rows."""
    match body:
        case plan.Union(left, right) | plan.UnionAll(left, right) if not clauses.is_closed(body):
            return [*ways_of(left), *ways_of(right)]
        case plan.Distinct(source) if not clauses.is_closed(body):
            return ways_of(source)
        case _:
            return [body]


def forwards(body: plan.Node, asked: Expr, *, may_raise: bool = False) -> bool:
    """Return True if each derived row has the value of its recursive row, or there is none.

    Nothing in between raises, unless it `may_raise`.
    """
    return clauses.is_closed(body) or origin(body, asked, may_raise=may_raise) == asked


def origin(body: plan.Node, asked: Expr, *, may_raise: bool = False) -> Expr | None:
    """Rewrite an expression over a derived row to its recursive row.

    Return None if it reads other rows, too, or if a callable in between may raise that must not.
    """
    expr = asked
    while not clauses.is_closed(body):
        if not may_raise and calls_may_raise(body):
            return None
        match body:
            case plan.Select(source) | plan.Extend(source):
                expr = over(expr, outputs(body))
                body = source
            case plan.Where(source):
                body = source
            case plan.Recursive():
                return expr
            case plan.Join() | plan.Product() | plan.AntiJoin() | plan.SemiJoin():
                found = _below_join(body, expr)
                if found is None:
                    return None
                body, expr = found
            case _:
                return None
    return None


def _below_join(
    join: plan.Join | plan.Product | plan.AntiJoin | plan.SemiJoin, expr: Expr
) -> tuple[plan.Node, Expr] | None:
    """Return the recursive side, and the expression over its rows.

    Return None if the expression reads the other side, or both sides are recursive.
    """
    left, right = join.inputs()
    if not (clauses.is_closed(left) or clauses.is_closed(right)):
        return None
    first = bindings(left)
    side, places = (
        (right, range(first, first + 1)) if clauses.is_closed(left) else (left, range(first))
    )
    if not reads(expr) <= set(places):
        return None
    rows = tuple(Parameter(max(0, place - places.start)) for place in range(places.stop))
    return side, substitute(expr, rows)
