"""Plans of windows: the rows of each partition, with the answers of window functions.

    reduce by a                  (partition, (bindings, answers))
      select                     (bindings, partition, keys, arguments)
        rows

SQL's OVER and `Relation.over` both make these nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from optimizer import plan
from optimizer.expr import Expr, Item, Lifted, Parameter, all_parameters, constant, tuple_of
from optimizer.expressions.knowledge import Shape
from optimizer.plans.nodes.groups import kept_by
from optimizer.plans.properties import shapes
from optimizer.record import record
from reactive.engine.collections.value_order import Directions
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.window import Window

PARTITION_OF_PACKED = Lifted(Item(Parameter(0), constant(1)), ("row",), (), 1)
ROW_OF_REDUCED = Parameter(1)
"""The row that the reduce makes, behind the key of its partition."""


@record
class WindowSort:
    """The partition of a row, its keys in it, each a tuple, and the directions of the keys."""

    partition: Expr
    keys: Expr
    directions: Directions


@record
class WindowAnswers:
    """Window functions of one sort, their arguments, and the shapes and text of the answers."""

    functions: tuple[Asked, ...]
    arguments: tuple[Expr, ...]
    shapes: tuple[Shape, ...]
    text: str


def reduce_partitions(
    source: plan.Node,
    sort: WindowSort,
    answers: WindowAnswers,
    keep: Sequence[int],
    lift: Callable[[Expr], Lifted],
) -> plan.Reduce:
    """Return the rows of `source` by partition, each the bindings at `keep` and the answers.

    `lift` makes a callable of an expression over the bindings of `source`.
    """
    every, known = shapes(source), all_parameters(len(shapes(source)))
    head = tuple_of(*(known[place] for place in keep))
    row = tuple_of(head, sort.partition, sort.keys, tuple_of(*answers.arguments))
    packed = plan.Select(source, lift(row))
    shape = (*(every[place] for place in keep), *answers.shapes)
    window = Window(sort.directions, answers.functions, shape)
    captures = tuple([each for step in window.callables for each in step.captures])
    function = replace(kept_by(window, answers.text), captures=captures)
    return plan.Reduce(packed, PARTITION_OF_PACKED, function)


def answer(place: int) -> Lifted:
    """Return the function that reads an item of the row that `reduce_partitions` makes."""
    return Lifted(Item(ROW_OF_REDUCED, constant(place)), ("partition", "row"), (), 2)
