"""Nodes that make rows from one row of their input at a time: filter, map, flatten, new columns.

    where p             the rows for which p is true
    select f            f(row) for each row
    unnest f            each row, with each element of f(row) as one more binding
    extend, bind        customer, order  ->  customer, order, total
    negate              a 1, b 2  ->  a -1, b -2
    previous            the rows as they were before the last commit

All but `previous` are linear: f(a + b) = f(a) + f(b), so that a change costs its own rows only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any

from optimizer.expr import Function, Lifted, row_names
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import written
from optimizer.plans import facts as costs
from optimizer.plans import headlines
from optimizer.plans.facts import (
    Calls,
    Facts,
    Node,
    as_first,
    monotone,
    never,
    of_input,
    one_unknown,
    same_rows,
    shape_made,
)
from optimizer.record import record


def _shapes_of_select(node: Select, inputs: Sequence[Shapes]) -> Shapes:
    return (shape_made(node.function, inputs[0]),)


@record
class Where(Node):
    """Selection: the rows for which the predicate is true."""

    input: Node
    predicate: Function

    facts = Facts(
        calls=(Calls("predicate", of_input),),
        raises=False,
        recursion=monotone,
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.of_function("where", "predicate"),
    )


@record
class Select(Node):
    """Projection with bag semantics: one row out for each row in."""

    input: Node
    function: Function

    facts = Facts(
        calls=(Calls("function", of_input),),
        raises=False,
        recursion=monotone,
        shapes=_shapes_of_select,
        is_set=never,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.of_function("select", "function"),
    )


@record
class Unnest(Node):
    """Each row with one more binding: an element of the collection that the function returns."""

    input: Node
    function: Function

    facts = Facts(
        calls=(Calls("function", of_input),),
        raises=True,
        recursion=monotone,
        shapes=lambda node, inputs: (*inputs[0], None),
        is_set=never,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.of_function("unnest", "function"),
    )


@record
class SelectMany(Node):
    """The elements of the collection that the function returns for each row."""

    input: Node
    function: Function

    facts = Facts(
        calls=(Calls("function", of_input),),
        raises=True,
        recursion=monotone,
        shapes=one_unknown,
        is_set=never,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.of_function("select_many", "function"),
    )


def _headline_of_extend(node: Extend) -> str:
    """Return the headline of an extend: `extend` if it keeps all bindings, else `bind`."""
    columns = [written(column) for column in node.columns]
    names: list[str | None] = [None] * (len(node.keep) + len(columns))
    names[: len(node.names)] = node.names
    shown = [
        text if name in (None, text.rpartition(".")[2]) else f"{name}={text}"
        for name, text in zip(names[len(node.keep) :], columns, strict=True)
    ]
    if columns and _keeps_all(node):
        return f"extend {', '.join(shown)}"
    old = _names_of_input(node)
    kept = [name or old[place] for place, name in zip(node.keep, names, strict=False)]
    return f"bind {', '.join([*kept, *shown])}".rstrip()


def _names_of_input(node: Extend) -> Sequence[str]:
    """Return the names that callables have for the bindings of the input."""
    count = max([*node.keep, -1]) + 1
    read = next((column.names for column in node.columns if isinstance(column, Lifted)), ())
    return read if len(read) >= count else row_names(count)


def _keeps_all(node: Extend) -> bool:
    """Return True if every binding stays in its place; False if there is no column to tell."""
    return bool(node.columns) and node.keep == tuple(range(node.columns[0].parameters))


def _shapes_of_extend(node: Extend, inputs: Sequence[Shapes]) -> Shapes:
    (of,) = inputs
    kept = [of[place] for place in node.keep]
    return (*kept, *[shape_made(column, of) for column in node.columns])


@record
class Extend(Node):
    """The bindings at the places `keep`, in that order, and one more for each of the `columns`.

    The columns are called with all bindings of the input. `names` has the names of the output
    bindings, None for one without a name.
    """

    input: Node
    keep: tuple[int, ...]
    columns: tuple[Function, ...]
    names: tuple[str | None, ...] = field(default=(), compare=False)

    facts = Facts(
        calls=(Calls("columns", of_input),),
        raises=False,
        recursion=monotone,
        shapes=_shapes_of_extend,
        is_set=lambda node, inputs: inputs[0] and _keeps_all(node),
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=_headline_of_extend,
    )


@record
class Negate(Node):
    """The rows of the input, with weights negated.

    A row of negative weight is not shown. It counts where weights are added: `union_all` cancels
    it with a row of positive weight.
    """

    input: Node

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("negation",),
        shapes=same_rows,
        is_set=never,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.by_name,
    )


@record
class Previous(Node):
    """The rows of the input before the last commit.

        commit      1      2      3
        input       a      a b    b
        previous    -      a      a b

    Its rows change also in a commit that does not touch the input: then the change of the commit
    before arrives. `moment` belongs to the engine, which keeps the last change there. No rule
    reaches through the node.
    """

    input: Node
    moment: Any = field(compare=False, repr=False)

    facts = Facts(
        calls=(),
        raises=False,
        recursion=lambda _: ("past",),
        shapes=same_rows,
        is_set=as_first,
        costs=costs.constant_cost,
        degree=costs.degree_as_input,
        headline=headlines.by_name,
    )
