"""Conditions of a circle of joins are evaluated, and raise, even if a further input is empty."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("late", [True, False])
def test_a_condition_above_a_circle_raises_though_another_input_has_no_rows(
    optimize: bool, late: bool
) -> None:
    db = Database(optimize=optimize)
    edges: Any = db.table(tuple, name="edges")
    names: Any = db.table(tuple, name="names")
    named = (
        edges.join(edges, on=lambda x, y: x[1] == y[0])
        .join(edges, on=lambda x, y, z: y[1] == z[0] and x[0] == z[1])
        .where(lambda x, y, z: 10 / (y[1] - z[1]) > 0)
        .join(names, left_key=lambda x, y, z: x[1], right_key=lambda n: n[0])
    )
    if late:
        edges.add((2, 2))
        with pytest.raises(ZeroDivisionError):
            named.materialize()
    else:
        view = named.materialize()
        with pytest.raises(ZeroDivisionError):
            edges.add((2, 2))
        assert not list(view) and not list(edges)


QUERIES: dict[str, Callable[[Any], Any]] = {
    "distinct": lambda t: t.select(lambda x: x[0]).distinct().where(lambda k: 1 / k > 0),
    "aggregate": lambda t: (
        t.group_by(lambda x: x[0]).aggregate(Count()).where(lambda k, n: 1 / k > 0)
    ),
    "top": lambda t: (
        t.group_by(lambda x: x[0]).top(1, by=lambda x: x[1]).where(lambda x: 1 / x[0] > 0)
    ),
    "reduce": lambda t: (
        t.group_by(lambda x: x[0]).reduce(lambda k, rows: rows).where(lambda k, x: 1 / k > 0)
    ),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("optimize", [True, False])
def test_a_condition_is_asked_of_the_rows_that_come_out_and_of_no_others(
    name: str, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    numbers: Any = db.table(tuple, name="numbers", stored=False)
    view = QUERIES[name](numbers).materialize()
    assert not optimize or "unless_raises" in str(view.explain())
    numbers.remove((0, 2))
    numbers.add((1, 2))
    assert len(view) == 1
    with pytest.raises(ZeroDivisionError), db.transaction():
        numbers.add((0, 2))
        numbers.add((0, 2))
    assert len(view) == 1
    numbers.add((0, 2))
    assert len(view) == 1


def test_a_condition_on_the_key_of_a_group_that_comes_to_nothing_is_not_asked() -> None:
    numbers: Any = Database().table(tuple, name="numbers")
    view = (
        numbers.group_by(lambda x: x[0])
        .reduce(lambda k, rows: list(rows)[1:])
        .where(lambda k, x: 1 / k > 0)
        .materialize()
    )
    numbers.add_all([(0, 1), (1, 1), (1, 2)])
    assert list(view) == [(1, (1, 2))]
    with pytest.raises(ZeroDivisionError):
        numbers.add((0, 2))
    assert list(view) == [(1, (1, 2))]
