"""Constants that conditions pin fields to: they hold for every row that passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from optimizer import plan
from optimizer.expr import Lifted
from optimizer.plans.field_values import NUMBERS, ConstantTests, constant_tests
from optimizer.plans.properties import shapes
from optimizer.rewriting.optimize import optimize
from reactive import Database


class Event(NamedTuple):
    kind: str
    number: int
    names: tuple[str, ...] = ()


WANTED = "sale"
SEVERAL = {"sale", "gift"}
LISTED = ["sale", "gift", "sale"]
NUMBER = 7


def pins_of(condition: Callable[[Event], object], row_type: Any = Event) -> ConstantTests:
    table: Any = Database().table(row_type)
    node = optimize(table.where(condition).plan).plan
    assert isinstance(node, plan.Where)
    assert isinstance(node.predicate, Lifted)
    return constant_tests([node.predicate.body], shapes(node.input))


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (lambda e: e.kind == "sale", {"kind": {"sale"}}),
        (lambda e: "sale" == e.kind, {"kind": {"sale"}}),  # noqa: SIM300
        (lambda e: e.kind == WANTED and e.number == 3, {"kind": {"sale"}, "number": {3}}),
        (lambda e: e.kind in ("sale", "gift"), {"kind": {"sale", "gift"}}),
        (lambda e: e.kind in {"sale"}, {"kind": {"sale"}}),
        (lambda e: e.kind in SEVERAL, {"kind": {"sale", "gift"}}),
        (lambda e: e.kind in LISTED and e.number == NUMBER, {"kind": SEVERAL, "number": {7}}),
        (lambda e: e.kind == f"{WANTED}-{NUMBER:03d}", {"kind": {"sale-007"}}),
        (lambda e: e.kind == f"{WANTED!r:>8}{None}", {"kind": {"  'sale'None"}}),
        (lambda e: e.kind == "sale" or e.kind == "gift", {"kind": {"sale", "gift"}}),
        (lambda e: e.kind in ("a", "b") and e.kind in ("b", "c"), {"kind": {"b"}}),
        (lambda e: not e.names and e.kind == "sale", {"kind": {"sale"}}),
        (lambda e: e.kind == "sale" and 1 / e.number > 2, {"kind": {"sale"}}),
    ],
)
def test_comparisons_with_constants_pin(
    condition: Callable[[Event], object], expected: dict[str, set[Any]]
) -> None:
    assert pins_of(condition) == {(name,): values for name, values in expected.items()}


@pytest.mark.parametrize(
    ("condition", "pins", "classes"),
    [
        (lambda e: e.number > 3 and e.kind == "sale", {"kind": {"sale"}}, {"number": NUMBERS}),
        (lambda e: e.number <= 3.5 and e.kind == "sale", {"kind": {"sale"}}, {"number": NUMBERS}),
        (lambda e: e.kind < "t" and e.number == 3, {"number": {3}}, {"kind": {str}}),
        (lambda e: e.number == 3 and e.kind < "t", {"number": {3}}, {}),
        (
            lambda e: e.number > 3 and e.number < "a" and e.kind == "b",
            {"kind": {"b"}},
            {"number": {}},
        ),
    ],
)
def test_what_is_compared_before_must_be_of_its_class(
    condition: Callable[[Event], object], pins: dict[str, Any], classes: dict[str, Any]
) -> None:
    found = pins_of(condition)
    assert found == {(name,): values for name, values in pins.items()}
    assert found.classes == {(name,): frozenset(kinds) for name, kinds in classes.items()}


@pytest.mark.parametrize(
    "condition",
    [
        lambda e: e.names < ("a",) and e.kind == "sale",
        lambda e: e.number > e.kind and e.kind == "sale",
        lambda e: e.kind != "sale",
        lambda e: e.kind == "sale" or e.number == 3,
        lambda e: 1 / e.number > 2 and e.kind == "sale",  # it may raise before
        lambda e: e.kind == e.names,
        lambda e: e.number == 1.5,
        lambda e: e.kind in e.names,
        lambda e: e.names == ("a",),
    ],
)
def test_others_do_not(condition: Callable[[Event], object]) -> None:
    assert pins_of(condition) == {}


@pytest.mark.parametrize(
    ("row_type", "condition", "expected"),
    [
        (tuple[str, int], lambda r: r[0] == "sale" and r[-1] == 3, {(0,): {"sale"}, (1,): {3}}),
        (tuple[str, int], lambda r: r[0][1] == 3, {(0, 1): {3}}),
        (tuple[Event, int], lambda r: r[0].kind == "sale", {(0, "kind"): {"sale"}}),
        (
            Event,
            lambda r: r[0] == "sale" and r[-2] in (3, 4),
            {("kind",): {"sale"}, ("number",): {3, 4}},
        ),
        (tuple, lambda r: r[-1] == 3, {(-1,): {3}}),
    ],
)
def test_positions_of_tuples_are_pinned(
    row_type: Any, condition: Callable[[Any], object], expected: dict[Any, Any]
) -> None:
    assert pins_of(condition, row_type) == expected


def test_fields_that_a_row_may_not_have_are_read_before_later_ones() -> None:
    found = pins_of(lambda e: e.kind == "sale" and e.number == 3, object)
    assert found == {("kind",): {"sale"}, ("number",): {3}}
    assert found.classes == {("kind",): None}
    known = pins_of(lambda e: e.kind == "sale" and e.number == 3)
    assert known.classes == {}
