"""Taking a callable into a plan: facts of its code are read once, whatever it captured."""

from __future__ import annotations

from optimizer.callables.opaque import Opaque, opaque
from tests.counted_calls import calls_of


def of(value: int) -> Opaque:
    return opaque(lambda row: row.customer == value, 1, "where")


def test_callables_of_one_place_are_taken_by_a_few_calls_each() -> None:
    first = calls_of(lambda: of(1))
    next_one = calls_of(lambda: of(2))
    assert next_one < min(first, 125)
    assert of(3) == of(3) != of(4)
