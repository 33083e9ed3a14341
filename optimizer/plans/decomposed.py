"""Recursions that are many small ones, which have nothing to do with each other.

    reach = edges U select (r.src, e.dst) (join(reach, edges, r.dst == e.src))

        the rows with src == "a" are derived from edges and from rows with src == "a" alone:
        each value of `src` is a partition, whose fixpoint is its own

A closure whose step joins it with itself is written anew as one that grows by an edge at a time,
which has the same rows.

Sound:  every way to derive rows from a recursive one forwards the column (`plans/forwarding`); a
        row that is kept as the best is the best of rows with the same value.
Needs:  one relation; a column of its rows that is a field or an item.
Source: decomposable recursive plans: O. Wolfson, A. Silberschatz, *Distributed Processing of Logic
        Programs*, 1988; J. Seib, G. Lausen, *Parallelizing Datalog Programs by Generalized
        Pivoting*, 1991.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from optimizer import plan
from optimizer.expr import (
    Attribute,
    Call,
    Display,
    Expr,
    Item,
    Lifted,
    Parameter,
    constant,
    row_names,
    substitute,
    tuple_of,
)
from optimizer.expressions.knowledge import Shape, constructor
from optimizer.plans.clauses import clauses, is_closed
from optimizer.plans.closures import Closure, closure_of
from optimizer.plans.forwarding import forwards, ways_of
from optimizer.plans.properties import free, row_shape
from optimizer.record import record


@record
class Decomposed:
    """A recursion by partitions.

    Parameters
    ----------
    node: the recursion; perhaps as it has been written anew.
    column: row -> the value that tells partitions apart.
    seeds: what derives rows from inputs alone.
    ways: what derives rows from one recursive row.
    """

    node: plan.Fixpoint
    column: Lifted
    seeds: tuple[plan.Node, ...]
    ways: tuple[plan.Node, ...]

    @property
    def column_name(self) -> str:
        """The column as one would write it of the recursive relation's name."""
        match self.column.body:
            case Attribute(_, name):
                return f"{self.node.names[0]}.{name}"
            case Item(_, key):
                return f"{self.node.names[0]}[{getattr(key, 'value', key)}]"
            case _:
                return "row"

    def sides(self) -> tuple[plan.Node, ...]:
        """What the ways read besides recursive rows, each once."""
        return tuple(dict.fromkeys(n for way in self.ways for n in _closed(way)))


def decomposed(node: plan.Node) -> Decomposed | None:
    """A recursion by partitions, if it can be taken apart."""
    if not isinstance(node, plan.Fixpoint) or len(node.names) > 1 or free(node):
        return None
    linear = _linear(node)
    ways = ways_of(linear.bodies[0])
    steps = tuple(way for way in ways if not is_closed(way))
    seeds = tuple(way for way in ways if is_closed(way))
    if not seeds or not steps:
        return None
    known = (row_shape(each) for each in (linear.bodies[0], *ways))
    for column in dict.fromkeys(column for shape in known for column in _columns(shape)):
        is_kept = all(forwards(way, column, may_raise=True) for way in steps)
        if is_kept and _is_within(linear.best[0], column):
            return Decomposed(linear, Lifted(column, ("row",), (), 1), seeds, steps)
    return None


def _columns(shape: Shape) -> Iterator[Expr]:
    """What reads a field or an item of a row."""
    row = Parameter(0)
    if isinstance(shape, tuple):
        yield from (Item(row, constant(place)) for place in range(len(shape)))
        return
    for place, name in enumerate((isinstance(shape, type) and constructor(shape)) or ()):
        yield Attribute(row, name)
        if issubclass(shape, tuple):  # type: ignore[arg-type]
            yield Item(row, constant(place))


def _is_within(best: plan.Best | None, column: Expr) -> bool:
    """Whether the rows of which the best is kept are of one partition."""
    if best is None:
        return True
    if not isinstance(best.by, Lifted) or not isinstance(best.value, Lifted):
        return False
    by = best.by.body
    return by == column or (isinstance(by, Display) and column in by.items)


def _closed(way: plan.Node) -> Iterator[plan.Node]:
    """The inputs of a way: as much of it as reads no recursive row."""
    waiting = [way]
    while waiting:
        node = waiting.pop()
        if is_closed(node):
            yield node
        else:
            waiting.extend(node.inputs())


def _linear(node: plan.Fixpoint) -> plan.Fixpoint:
    """A closure as one that grows by one row of its source at a time; others as they are."""
    ways = [way for way in ways_of(node.bodies[0]) if not is_closed(way)]
    if all(_reads_one(way) for way in ways):
        return node
    closure = closure_of(node, clauses(node))
    return node if closure is None else _grown(node, closure)


def _reads_one(way: plan.Node) -> bool:
    return not any(isinstance(n, plan.Join) and _is_of_two(n) for n in _open(way))


def _is_of_two(join: plan.Join) -> bool:
    return not (is_closed(join.left) or is_closed(join.right))


def _open(way: plan.Node) -> Iterator[plan.Node]:
    waiting = [way]
    while waiting:
        node = waiting.pop()
        if not is_closed(node):
            yield node
            waiting.extend(node.inputs())


def _grown(node: plan.Fixpoint, of: Closure) -> plan.Fixpoint:
    assert isinstance(of.ends.body, Display)
    begin, end = (substitute(e, (Parameter(0),)) for e in of.ends.body.items)
    kind: Any = of.kind
    shape = row_shape(node.bodies[0])
    relation = plan.Recursive(node.level, 0, node.names[0], True, (shape,))
    first, last = (_field(kind, place) for place in (0, 1))
    seed = of.source if of.is_row else plan.Select(of.source, _function(_row(kind, begin, end), 1))
    match = plan.Match(_function(last, 1), _function(begin, 1))
    joined = plan.Join(relation, of.source, match)
    longer = _row(kind, first, substitute(end, (Parameter(1),)))
    body = plan.Union(seed, plan.Select(joined, _function(longer, 2)))
    return replace(node, bodies=(body,))


def _field(kind: Any, place: int) -> Expr:
    if kind is tuple:
        return Item(Parameter(0), constant(place))
    return Attribute(Parameter(0), (constructor(kind) or ())[place])


def _row(kind: Any, begin: Expr, end: Expr) -> Expr:
    if kind is tuple:
        return tuple_of(begin, end)
    return Call(constant(kind, kind.__name__), (begin, end))


def _function(body: Expr, parameters: int) -> Lifted:
    return Lifted(body, row_names(parameters), (), parameters)
