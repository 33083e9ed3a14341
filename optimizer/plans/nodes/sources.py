"""Nodes without inputs: tables, rows written in the query, rows that an operator passes inside;
and nodes that stand for a part of the query that is optimized or computed by itself.

    table orders               the rows of a table
    values 1, 2, 3             three rows, which never change
    view totals                the rows of a view, computed once for all queries over it
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

from optimizer.callables.captures import meaning
from optimizer.callables.opaque import Opaque
from optimizer.expr import Function
from optimizer.expressions.knowledge import Shape, Shapes
from optimizer.expressions.simplification import tuple_width
from optimizer.kinds.kind import class_of, kind_of
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import Facts, Node, always, as_first, monotone, same_rows
from optimizer.record import record


def _shapes_of_table(node: Table, inputs: Sequence[Shapes]) -> Shapes:
    """Return the shape of a table's rows: a tuple's width, the declared class, or None."""
    width = tuple_width(node.row_type)
    if width is not None:
        return ((None,) * width,)
    return (None if node.row_type is None else class_of(kind_of(node.row_type)),)


def key_of_value(value: Any) -> tuple[()]:
    """Return the key of each value of a parameter."""
    return ()


@record
class Table(Node):
    """The rows of a base table. `key` is set for a keyed table: at most one row per key.

    All rows are instances of `row_type`. `time` is set for a stream, whose rows are events that
    come and are not removed: their time, and the clock that has its watermark.
    """

    number: int
    name: str
    key: Opaque | None
    stored: bool
    row_type: Any = object
    time: Function | None = field(default=None, repr=False)
    clock: Any = field(default=None, repr=False, compare=False)

    @property
    def is_value(self) -> bool:
        """True for a parameter: the table always has one row."""
        return self.key is not None and self.key.function is key_of_value

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=_shapes_of_table,
        is_set=lambda node, _: node.key is not None,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=headlines.table,
    )


@record
class Known(Table):
    """A part of a query over tables that are not stored, whose rows so far are held.

    The engine makes it for a query that is materialized late. `of` has the shapes of the bindings,
    `part` belongs to the engine. As in its tables, weights may be negative.
    """

    of: tuple[Any, ...] = (None,)
    is_set: bool = False
    part: Any = field(default=None, compare=False, repr=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: node.is_set,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=lambda node: f"rows of {node.name}",
    )


@record
class Empty(Node):
    """No rows, with `bindings` bindings; the optimizer makes it of a predicate that is false."""

    bindings: int

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: (None,) * node.bindings,
        is_set=always,
        costs=costs.nothing,
        degree=costs.degree_of_none,
        headline=headlines.by_name,
    )


SHOWN = 4


LONGEST = 60


def _headline_of_values(node: Values) -> str:
    """Return the headline of written rows: the first rows, and the number of the others."""
    shown = [f"{row!r:.{LONGEST}}" for row in islice(node.rows, SHOWN)]
    rest = len(node.rows) - len(shown)
    more = [f"... {rest} more"] if rest else []
    return f"values {', '.join([*shown, *more])}".rstrip()


@record
class Values(Node):
    """Rows that are written in the query, with duplicates; rows of several bindings are tuples.

    Nodes are compared by `meaning`; `of` has the shapes of the bindings. `values` makes a node.
    """

    rows: tuple[Any, ...] = field(compare=False)
    meaning: Any = field(repr=False)
    of: Shapes

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: len(set(node.rows)) == len(node.rows),
        costs=costs.nothing,
        degree=costs.degree_of_none,
        headline=_headline_of_values,
    )


def values(rows: Iterable[Any], of: Shapes | None = None) -> Values:
    """Return the node of hashable rows; without `of` they have one binding, typed by the rows."""
    kept = tuple(rows)
    return Values(kept, meaning(kept), (shape_of_all(kept),) if of is None else of)


def shape_of_all(rows: tuple[Any, ...]) -> Shape:
    """Return the shape that all of the rows have; None if they differ."""
    kinds = set(map(type, rows))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind is not tuple:
        return kind
    if len(set(map(len, rows))) != 1:
        return None
    return tuple(map(shape_of_all, zip(*rows, strict=True)))


@record
class Given(Node):
    """Rows that an operator passes to the plan inside it; made by the engine."""

    index: int
    is_set: bool
    of: tuple[Any, ...]

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=lambda node, _: node.of,
        is_set=lambda node, _: node.is_set,
        costs=costs.nothing,
        degree=costs.degree_of_rows,
        headline=lambda node: f"given {node.index}",
    )


@record
class Shared(Node):
    """A part that several nodes read.

    It exists while rules run: no rule reaches through it, since each reader would get a copy.
    """

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.by_name,
    )


@record
class View(Node):
    """The rows of a view that the query reads.

    No rule reaches through it, so that the rows are not computed again for the query.
    """

    input: Node
    name: str | None = field(default=None, compare=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.view,
    )


@record
class Settled(Node):
    """A part of a query that is optimized by itself (`segments.Segment`); no rule reaches into it.

    No query is written with it: it stands in a plan while rules run, and in the plan that runs.
    """

    segment: Any

    facts = Facts(
        calls=(),
        raises=True,
        recursion=monotone,
        shapes=lambda node, _: node.segment.shapes,
        is_set=lambda node, _: node.segment.is_set,
        costs=costs.nothing,
        degree=lambda node, _: node.segment.degree,
        headline=lambda node: node.segment.run.facts.headline(node.segment.run),
    )
