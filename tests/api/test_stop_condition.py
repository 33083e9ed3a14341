"""Loops that end at a condition, beside a plain loop over lists, through generated histories."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Database, FixpointError, PlanError, Sum, Table, iterate
from tests.budget import examples

Rel = Any
LIMITS = {
    "all": lambda rows: all(x > 50 for x in rows),
    "any": lambda rows: any(x > 50 for x in rows),
    "sum": lambda rows: sum(x for x in rows) > 200,
    "number": lambda rows: len(rows) >= 3,
    "both": lambda rows: len(rows) >= 1 and max(x for x in rows) % 3 == 0,
    "always": lambda rows: True,
}
ROWS = st.lists(st.integers(1, 9), max_size=4)


def plain_loop(
    rows: list[int], step: Callable[[list[int]], list[int]], until: Callable[[Any], Any], most: int
) -> list[int] | None:
    """Return the rows of the first round that fulfils the condition; None if there is none."""
    for _ in range(most + 1):
        if until(rows):
            return rows
        made = sorted(step(rows))
        if made == rows:
            return rows
        rows = made
    return None


@pytest.mark.parametrize("name", LIMITS)
@given(st.lists(st.tuples(ROWS, ROWS), min_size=1, max_size=5))
@examples(60)
def test_rows_are_those_of_the_first_round_that_fulfils_it(
    name: str, history: list[tuple[list[int], list[int]]]
) -> None:
    until = LIMITS[name]
    db = Database()
    numbers = db.table(int, name="numbers")
    view = iterate(
        lambda n: n.select(lambda x: 2 * x), numbers, until=until, max_rounds=12
    ).materialize()
    for come, gone in history:
        before = sorted(numbers)
        if _endless(before, come, gone, until):
            with pytest.raises(FixpointError):
                _commit(db, numbers, come, gone)
        else:
            _commit(db, numbers, come, gone)
        expected = plain_loop(sorted(numbers), lambda rows: [2 * x for x in rows], until, 12)
        assert sorted(view) == expected
        view.verify()


def _commit(db: Database, numbers: Table[int], come: list[int], gone: list[int]) -> None:
    with db.transaction():
        numbers.add_all(come)
        for row in gone:
            if row in numbers:
                numbers.remove(row)


def _endless(
    held: list[int], come: list[int], gone: list[int], until: Callable[[Any], Any]
) -> bool:
    """Return True if a commit leaves rows with which the loop does not end."""
    rows = [*held, *come]
    for row in gone:
        if row in rows:
            rows.remove(row)
    return plain_loop(sorted(rows), lambda some: [2 * x for x in some], until, 12) is None


def test_a_condition_reads_all_relations_of_a_step() -> None:
    db = Database()
    low, high = db.table(int, name="low"), db.table(int, name="high")
    low.add(0)
    high.add(100)
    small, large = iterate(
        lambda a, b: (a.select(lambda x: x + 10), b.select(lambda x: x - 5)),
        (low, high),
        until=lambda a, b: any(x >= y for x in a for y in b),
    )
    shown = small.materialize(), large.materialize()
    assert [list(each) for each in shown] == [[70], [65]]
    high.update(100, 20)
    assert [list(each) for each in shown] == [[20], [10]]
    shown[0].verify()
    shown[1].verify()


def test_a_condition_reads_what_stands_outside_of_the_loop() -> None:
    db = Database()
    start, limit = db.table(int, name="start"), db.table(int, name="limit")
    start.add(1)
    limit.add(10)
    view = iterate(
        lambda n: n.select(lambda x: 3 * x),
        start,
        until=lambda n: all(any(x > most for most in limit) for x in n),
    ).materialize()
    assert list(view) == [27]
    limit.update(10, 100)
    assert list(view) == [243]
    view.verify()


def test_a_loop_with_groups_and_a_tolerance_ends_at_a_condition() -> None:
    db = Database()
    amounts = db.table(tuple[str, float], name="amounts")
    amounts.add_all([("a", 64.0), ("b", 8.0)])
    view = iterate(
        lambda rows: (
            rows.group_by(lambda r: r[0])
            .aggregate(Sum(lambda r: r[1]))
            .select(lambda key, total: (key, total / 2))
        ),
        amounts,
        until=lambda rows: all(r[1] < 10 for r in rows),
        tolerance=0.1,
        of=lambda r: r[1],
    ).materialize()
    assert sorted(view) == [("a", 8.0), ("b", 1.0)]
    amounts.remove(("a", 64.0))
    assert sorted(view) == [("b", 8.0)]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "times": ({"times": 3}, "iterate has both times= and until="),
    "contraction": (
        {"tolerance": 1.0, "of": lambda x: x, "by": lambda x: 0, "contraction": 0.5},
        "a loop that ends at a condition has no bound",
    ),
    "relation": ({"until": lambda n: n.where(lambda x: x > 9)}, "is not read over relations"),
    "two": ({"until": lambda a, b: True}, "takes the relations of the step, 'x'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_condition_of_the_rows_is_refused(name: str) -> None:
    words, message = REFUSED[name]
    numbers = Database().table(int, name="numbers")
    options: dict[str, Any] = {"until": lambda n: len(n) > 3, **words}
    with pytest.raises(PlanError) as caught:
        iterate(lambda x: x.select(lambda y: y + 1), numbers, **options)
    assert message in str(caught.value)
