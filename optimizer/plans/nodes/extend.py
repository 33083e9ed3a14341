"""The node of `extend` and `bind`: rows with other bindings than those that they are made of.

extend total=o.price * o.pieces      customer, order    ->  customer, order, total
bind customer, price=o.price         customer, order    ->  customer, price
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from optimizer.expr import Function, Lifted, row_names
from optimizer.expressions.knowledge import Shapes
from optimizer.expressions.text import written
from optimizer.plans import costs
from optimizer.plans.facts import Calls, Facts, monotone, of_input, shape_made
from optimizer.plans.plan_node import Node
from optimizer.record import record


def _headline(node: Extend) -> str:
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
    """The names that callables have for the bindings below."""
    count = max([*node.keep, -1]) + 1
    read = next((column.names for column in node.columns if isinstance(column, Lifted)), ())
    return read if len(read) >= count else row_names(count)


def _keeps_all(node: Extend) -> bool:
    """Whether every binding stays, in its place; not known if there is no column."""
    return bool(node.columns) and node.keep == tuple(range(node.columns[0].parameters))


def _bindings(node: Extend, inputs: Sequence[Shapes]) -> Shapes:
    (of,) = inputs
    kept = [of[place] for place in node.keep]
    return (*kept, *[shape_made(column, of) for column in node.columns])


@record
class Extend(Node):
    """The bindings at the places `keep`, in that order, and one more for each of the `columns`,
    which are called with all bindings of the input. `names` are those of the bindings that come
    out, as far as they have any."""

    input: Node
    keep: tuple[int, ...]
    columns: tuple[Function, ...]
    names: tuple[str | None, ...] = field(default=(), compare=False)

    facts = Facts(
        calls=(Calls("columns", of_input),),
        raises=False,
        recursion=monotone,
        shapes=_bindings,
        is_set=lambda node, inputs: inputs[0] and _keeps_all(node),
        costs=costs.constant,
        degree=costs.degree_as_input,
        headline=_headline,
    )
