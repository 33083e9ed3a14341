"""What a plan node says of itself, so that nothing else needs to know its class.

    class Where(Node):
        input: Node
        predicate: Function

        facts = Facts(
            calls=(Calls("predicate", of_input),),
            raises=False,
            recursion=monotone,
            shapes=same_rows,
            is_set=same,
            costs=constant,
            degree=degree_as_input,
            headline=...,
        )

Nothing has a default: a node that leaves a fact open cannot be defined. What asks for facts are
`traverse` (callables), `raising`, `stratify`, `properties`, `costs` and `explain`.

A fact of the rows is a function of the node and of the same fact of its inputs, so that
`properties` can compute it for deep plans without recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from optimizer.expr import Function, Lifted
from optimizer.expressions.knowledge import Shape, Shapes, shape_of
from optimizer.expressions.naming import naming_of
from optimizer.plans.costs import Costs
from optimizer.record import record

Barrier = Literal["negation", "aggregate", "order", "past"]
"""Why a recursion may not come through an input: more rows in may mean fewer rows out, or they are
rows of another commit."""


@record
class Calls:
    """A field of a node that holds a callable, or several.

    Parameters
    ----------
    path: the name of the field; through other records, and tuples of them, by dots.
    given: what is known of the arguments, from the shapes of the node's inputs and the place in
        the tuple.
    of_rows: whether it is asked of one row after the other, so that it pays to have it read.
    """

    path: str
    given: Callable[[Sequence[Shapes], int], Shapes]
    of_rows: bool = True
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.path.split(".")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the optimizer asks of a kind of node.

    Parameters
    ----------
    calls: where it holds the user's callables.
    raises: whether it may raise though none of them does: it iterates, compares or adds values.
    recursion: per input, why a recursion may not come through it; None where it may.
    shapes: what is known of each binding of its rows.
    is_set: whether no row occurs twice.
    costs: what one changed row of each input costs, if partners are found by a key.
    degree: how many deltas are taken of each other until nothing of the database is read.
    headline: the node in words, without its inputs.
    """

    calls: tuple[Calls, ...]
    raises: bool
    recursion: Callable[[Any], Sequence[Barrier | None]]
    shapes: Callable[[Any, Sequence[Shapes]], Shapes]
    is_set: Callable[[Any, Sequence[bool]], bool]
    costs: Callable[[Any], Costs]
    degree: Callable[[Any, Sequence[float]], float]
    headline: Callable[[Any], str]


# What callables are given.


def of_input(inputs: Sequence[Shapes], place: int) -> Shapes:
    """The bindings of the first input."""
    return inputs[0]


def of_right(inputs: Sequence[Shapes], place: int) -> Shapes:
    """A row of the second input, as one value."""
    return (as_row(inputs[1]),)


def of_pair(inputs: Sequence[Shapes], place: int) -> Shapes:
    """The bindings of the first input, and a row of the second."""
    return (*inputs[0], as_row(inputs[1]))


def of_each(inputs: Sequence[Shapes], place: int) -> Shapes:
    """The bindings of the input with the place of the callable."""
    return inputs[place]


def as_row(of: Shapes) -> Shape:
    """What is known of a row as one value."""
    return of[0] if len(of) == 1 else of


# Recursion.


def monotone(node: Any) -> Sequence[Barrier | None]:
    """More rows in, no fewer rows out, whichever input they come from."""
    return (None,) * len(node.inputs())


def right_negates(node: Any) -> Sequence[Barrier | None]:
    return (None, "negation")


def negates_of_outer_join(node: Any) -> Sequence[Barrier | None]:
    """A row of the side that is kept takes away nothing; one of the other may take its None."""
    return (None, "negation") if node.kind == "left" else ("negation", "negation")


def both_negate(node: Any) -> Sequence[Barrier | None]:
    return ("negation", "negation")


# Shapes of rows.


def same_rows(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    return inputs[0]


def pairs(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    return of_pair(inputs, 0)


def rows_of_both(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """What is known of the rows of either input."""
    return tuple(a if a == b else None for a, b in zip(*inputs, strict=True))


def rows_of_difference_all(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """Those of the left, of which none is one of the right if that has none."""
    return inputs[0] if type(node.right).__name__ == "Empty" else rows_of_both(node, inputs)


def rows_of_outer_join(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    left, right = inputs
    return (
        *(left if node.kind == "left" else (None,) * len(left)),
        as_row(right) if node.kind == "right" else None,
    )


def groups(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    """The key and the aggregates; or one record of them."""
    if node.row is not None:
        return (node.row,)
    key = () if node.key is None else (shape_made(node.key, inputs[0]),)
    return (*key, *[None] * len(node.aggregates))


def shape_made(function: Function, of: Shapes) -> Shape:
    """What is known of what a callable gives."""
    naming = naming_of(function)
    if naming is not None:
        kind: type = naming.kind
        return kind
    return shape_of(function.body, of) if isinstance(function, Lifted) else None


def one_unknown(node: Any, inputs: Sequence[Shapes]) -> Shapes:
    return (None,)


# Whether they are sets.


def always(node: Any, inputs: Sequence[bool]) -> bool:
    return True


def never(node: Any, inputs: Sequence[bool]) -> bool:
    return False


def as_first(node: Any, inputs: Sequence[bool]) -> bool:
    return inputs[0]


def if_both(node: Any, inputs: Sequence[bool]) -> bool:
    return all(inputs)


def if_either(node: Any, inputs: Sequence[bool]) -> bool:
    return any(inputs)


def is_set_of_outer_join(node: Any, inputs: Sequence[bool]) -> bool:
    """Of a full join rows that are None may be alone on both sides."""
    return node.kind != "full" and all(inputs)
