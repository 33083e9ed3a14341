"""Conditions on single sides of a join: equations are keys, in guards too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from optimizer import plan
from optimizer.expr import Expr, First, Guard, Item, Lifted, Operation, Parameter, constant
from optimizer.plans.side_conditions import SideConditions, SideTerm, side_conditions_of
from optimizer.rewriting.optimize import optimize
from reactive import Database
from tests.golden.contents import differences
from tests.golden.tables import NAMES, tables
from tests.optimizer.rewriting.test_optimize import optimized
from tests.written import evaluated

ROWS = 300
LISTS = [
    "pairs.join(pairs).join(pairs).where(lambda x, y, z: x[0] == y[0] and y[1] == z[1]"
    " and z[0] == 2)",
    "pairs.join(pairs).join(pairs).where(lambda x, y, z: x[1] == 1 and x[1] == y[1]"
    " and y[0] == z[0])",
    "pairs.join(pairs).join(students).where(lambda x, y, s: s.age == 17 and x[1] == y[1]"
    " and y[0] == s.age)",
]


def item(binding: int, place: int) -> Expr:
    return Item(Parameter(binding), constant(place))


def join_on(test: Expr) -> plan.Join:
    """Join two tables of tuples of unknown types."""
    pairs = tables(Database())["pairs"].plan
    return plan.Join(pairs, pairs, plan.Match(on=Lifted(test, ("a", "b"), (), 2)))


def found(join: plan.Join) -> SideConditions:
    conditions = side_conditions_of(join)
    assert conditions is not None
    return conditions


def bodies(side: tuple[SideTerm, ...]) -> list[tuple[Expr, bool, bool]]:
    return [(step.function.body, step.is_key, step.is_guard) for step in side]


def test_an_equation_in_a_guard_is_a_key() -> None:
    conditions = found(join_on(Guard(Operation("==", (item(0, 0), item(1, 1))))))
    assert bodies(conditions.left) == [(item(0, 0), True, True)]
    assert bodies(conditions.right) == [(item(0, 1), True, True)]
    assert conditions.residual is None


def test_what_a_guard_evaluates_before_goes_with_the_key_of_its_side() -> None:
    equation = Operation("==", (item(0, 0), item(1, 1)))
    conditions = found(join_on(Guard(equation, (item(0, 2), item(1, 3)))))
    assert bodies(conditions.left) == [(First((item(0, 2),), item(0, 0)), True, True)]
    assert bodies(conditions.right) == [(First((item(0, 3),), item(0, 1)), True, True)]


def test_a_guard_that_evaluates_something_of_both_sides_before_checks_its_operands() -> None:
    equation = Operation("==", (item(0, 0), item(1, 1)))
    both = Operation("<", (item(0, 0), item(1, 0)))
    found = side_conditions_of(join_on(Guard(equation, (both,))))
    assert found is not None
    assert [step.is_key for step in found.left] == [False, True]
    assert [step.is_key for step in found.right] == [False, True]


def test_a_guard_that_evaluates_what_may_raise_for_any_operands_is_asked_of_pairs() -> None:
    equation = Operation("==", (item(0, 0), item(1, 1)))
    both = Operation("//", (item(0, 0), item(1, 0)))
    assert side_conditions_of(join_on(Guard(equation, (both,)))) is None


@pytest.mark.parametrize("query", LISTS)
def test_lists_of_tables_of_tuples_have_the_rows_and_errors_of_the_plan_as_written(
    query: str,
) -> None:
    node = evaluated(query, {**NAMES, **tables(Database())}).plan
    assert "join on unless_raises(" in optimized(query)
    assert differences(node, [optimize(node).plan]) == []


@dataclass(frozen=True, slots=True)
class Triple:
    """A row whose fields are known."""

    a: int
    b: int
    c: int


def touched(kind: Any) -> int:
    """Rows that are touched where three tables are joined by one list of conditions."""
    db = Database()
    a, b, c = (db.table(kind, name=name) for name in "abc")
    listed: Any = a.join(b).join(c)
    if kind is tuple:
        made = listed.where(lambda x, y, z: x[0] == y[0] and y[1] == z[1] and z[2] == 5)
    else:
        made = listed.where(lambda x, y, z: x.a == y.a and y.b == z.b and z.c == 5)
    view = made.materialize()
    for table in (a, b, c):
        fields = [(n, n % 50, n % 7) for n in range(ROWS)]
        table.add_all(fields if kind is tuple else [Triple(*row) for row in fields])
    found: int = view.stats().touched
    return found


def test_tables_of_tuples_are_joined_by_their_keys_as_others_are() -> None:
    assert touched(tuple) < 1.5 * touched(Triple)
