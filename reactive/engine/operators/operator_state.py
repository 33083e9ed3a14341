"""State of an operator that a later process can begin with, in place of computing it.

    state()                  lists and plain values, which no later step changes
    restore(state, inputs)   into a new operator, which then is as if it had stepped over `inputs`

A list is a column of values, rows among them (`durable/rows/packed.py`); another value is a number,
a string, or a dictionary or tuple of such. An operator that can be computed from its inputs as fast
as it is read has no `state`. One whose rows could not be told from others returns None.

Cost: O(rows); some 20 ns for each, during which nobody commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeGuard

State: TypeAlias = Mapping[str, Any]
Inputs: TypeAlias = Callable[[], Sequence[Any]]
"""All rows of the inputs of an operator, one after the other."""
SUMS = frozenset({int, tuple})
"""The classes of sums that can be stored; rare ones are kept in a form of their own."""


class Restorable(Protocol):
    """An operator whose state can be stored."""

    def state(self) -> State | None: ...
    def restore(self, state: State, inputs: Inputs) -> None: ...


def is_restorable(operator: object) -> TypeGuard[Restorable]:
    """Return True if the class of an operator itself, and not its base, tells its state."""
    return "restore" in vars(type(operator))


def shortened(values: list[Any]) -> Any:
    """One value in the place of a list that has no other, which is not read as fast.

    >>> shortened([1, 1]), shortened([1, 2]), shortened([])
    (1, [1, 2], [])
    """
    return values[0] if values and values.count(values[0]) == len(values) else values


def repeated(value: Any, length: int) -> list[Any]:
    """The reverse of `shortened`."""
    return value if isinstance(value, list) else [value] * length


def columns_of(weights: Mapping[Any, int], prefix: str = "") -> State:
    """Return rows and their weights as two columns, whose names begin with `prefix`.

    >>> columns_of({"a": 1, "b": 1})
    {'rows': ['a', 'b'], 'weights': 1}
    """
    weight = shortened(list(weights.values()))
    return {f"{prefix}rows": list(weights), f"{prefix}weights": weight}


def weighted_rows(state: State, prefix: str = "") -> Iterable[tuple[Any, int]]:
    """The reverse of `columns_of`.

    >>> list(weighted_rows({"rows": ["a", "b"], "weights": 1}))
    [('a', 1), ('b', 1)]
    """
    rows = state[f"{prefix}rows"]
    return zip(rows, repeated(state[f"{prefix}weights"], len(rows)), strict=True)
