"""A join on one equation or another looks its pairs up: a change touches its matches alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import Database

Query = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Person:
    mail: str
    phone: int


KINDS = ("join", "left_join", "right_join", "full_join", "semi_join", "anti_join")


def of_kind(kind: str) -> Query:
    """Return a join by one of two keys."""
    return lambda a, b: getattr(a, kind)(b, on=lambda x, y: x.mail == y.mail or x.phone == y.phone)


def checked(kind: str) -> Query:
    """Return a join by one of two keys with a condition that may raise."""
    return lambda a, b: getattr(a, kind)(
        b, on=lambda x, y: x.mail == y.mail or (x.phone == y.phone and x.phone < 10**9)
    )


QUERIES: dict[str, Query] = {
    **{kind: of_kind(kind) for kind in KINDS},
    **{f"{kind}, checked": checked(kind) for kind in KINDS},
    "distinct": lambda a, b: (
        a.join(b)
        .where(lambda x, y: x.phone == y.phone or x.mail == y.mail)
        .select(lambda x, y: x.phone)
        .distinct()
    ),
}


def touched(query: Query, size: int, *, optimize: bool = True) -> int:
    """Return the rows touched by a change of each side, where each row has one partner or two."""
    db = Database(optimize=optimize)
    a, b = db.table(Person), db.table(Person)
    a.add_all(Person(f"m{n}", n) for n in range(size))
    b.add_all(Person(f"m{n}", n + 1) for n in range(size))
    view = query(a, b).materialize()
    a.add(Person("m3", 6))  # the first row that is looked up on the other side has an index made
    b.add(Person("m3", 6))
    before = view.stats().touched
    a.add(Person("m3", 7))
    b.add(Person("m4", 8))
    a.remove(Person("m3", 7))
    view.verify()
    return int(view.stats().touched - before)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_a_change_touches_as_much_in_a_table_100_times_larger(name: str) -> None:
    assert touched(QUERIES[name], 10) == touched(QUERIES[name], 1_000) < 90


def test_a_range_of_one_row_or_a_test_of_the_other_side() -> None:
    """A parameter that moves touches the rows that enter or leave, with None first or last."""
    for order in ("none first", "none last"):
        touched = []
        for size in (100, 2_000):
            db = Database()
            a, least = db.table(tuple[str, int | None], name="a"), db.parameter(5)
            a.add_all((f"m{n}", None if n % 2 else n) for n in range(size))
            query = (
                a.where(lambda x: x[1] is None or x[1] > least())
                if order == "none first"
                else a.where(lambda x: (x[1] is not None and x[1] > least()) or x[1] is None)
            )
            view = query.materialize()
            least.set(6)
            before = view.stats().touched
            least.set(9)
            assert len(view) == size - 5
            view.verify()
            touched.append(view.stats().touched - before)
        assert touched[0] == touched[1] < 20, order


@pytest.mark.parametrize("name", QUERIES)
def test_as_written_it_touches_every_row_of_the_other_side(name: str) -> None:
    assert touched(QUERIES[name], 300, optimize=False) > 600


def test_the_inputs_of_the_alternatives_are_computed_once() -> None:
    calls = 0

    def is_known(person: Person) -> bool:
        nonlocal calls
        calls += 1
        for letter in person.mail:
            return letter == "m"
        return False

    db = Database()
    a, b = db.table(Person), db.table(Person)
    view = (
        a.select(lambda p: (p.mail, p.phone))
        .join(b.where(Known(is_known)), on=lambda x, y: x[0] == y.mail or x[1] == y.phone)
        .materialize()
    )
    a.add_all(Person(f"m{n}", n) for n in range(10))
    b.add_all(Person(f"m{n}", n + 1) for n in range(10))
    assert calls == 10
    assert len(view) == 19
    assert str(view.explain()).count("pipeline") == 4  # of these two are "as above"


class Known:
    """A callable that cannot be read."""

    def __init__(self, function: Callable[[Person], bool]) -> None:
        self._function = function

    def __call__(self, person: Person) -> bool:
        return self._function(person)
