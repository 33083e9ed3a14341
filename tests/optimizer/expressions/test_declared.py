"""Facts from declarations: values that are no NaN and hold none, and values that are no tuples."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal, NewType

import pytest

from optimizer.expr import Attribute, Operation, Parameter, constant
from optimizer.expressions.simplification import holds_no_nan, is_no_tuple

Whole = NewType("Whole", int)


@dataclass(frozen=True)
class Typed:
    whole: int
    maybe: str | None
    day: date
    pair: tuple[int, str]
    named: Whole
    noted: Annotated[int, "a note"]
    one_of: Literal["a", 1]
    real: float
    record: Point
    real_or_whole: float | int
    reals: tuple[float, ...]
    pair_or_real: tuple[int, int] | float
    bare: tuple  # type: ignore[type-arg]
    anything: Any
    number: object
    key: Hashable


@dataclass(frozen=True)
class Point:
    x: float


FIELDS = list(Typed.__dataclass_fields__)


def field(name: str) -> Attribute:
    return Attribute(Parameter(0), name)


def test_fields_of_other_classes_than_floats_hold_no_nan() -> None:
    assert [name for name in FIELDS if holds_no_nan(field(name), (Typed,))] == FIELDS[:7]


def test_fields_of_classes_that_tuples_are_not_of_are_no_tuples() -> None:
    assert [name for name in FIELDS if is_no_tuple(field(name), (Typed,))] == FIELDS[:10]


@pytest.mark.parametrize(
    ("value", "without"), [(1, True), ("a", True), (None, True), (1.5, False), ((1,), False)]
)
def test_constants_hold_none_as_their_classes_say(value: Any, without: bool) -> None:
    assert holds_no_nan(constant(value), ()) == without


def test_what_is_computed_of_integers_is_no_nan() -> None:
    def remainder(name: str) -> Operation:
        return Operation("%", (field(name), constant(3)))

    assert holds_no_nan(remainder("whole"), (Typed,))
    assert not holds_no_nan(remainder("real"), (Typed,))
    assert not holds_no_nan(field("whole"), (None,))
