"""`group_by(key).reduce(f)` against plain Python, after each commit and each that is refused."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    Count,
    Database,
    Multiset,
    OffloadError,
    PlanError,
    StratificationError,
    fixpoint,
)
from reactive.engine.operators.rowwise import Reduce
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.replica import Replica

NAN = float("nan")


@dataclass(frozen=True, slots=True)
class Order:
    town: Any
    total: Any


class Pair(NamedTuple):
    town: Any
    total: Any


KINDS: list[Callable[[Any, Any], Any]] = [Order, Pair]


def totals(town: Any, rows: Multiset[Any]) -> Iterable[Any]:
    """Yield the largest total, and the rows that occur twice."""
    numbers = [row.total for row in rows if row.total == row.total and row.total is not None]
    yield max(numbers, default=None)
    yield from (row for row, times in rows.items() if times == 2)


def expected(rows: Iterable[Any]) -> Counter[Any]:
    groups: dict[Any, Counter[Any]] = {}
    for row in rows:
        groups.setdefault(row.town, Counter())[row] += 1
    return Counter(
        (town, row) for town, members in groups.items() for row in totals(town, Multiset(members))
    )


ROWS = st.tuples(st.sampled_from(["a", "b", 1, None, NAN]), st.sampled_from([0, 1, 2, None, NAN]))
COMMITS = st.lists(
    st.tuples(
        st.lists(st.tuples(ROWS, st.integers(1, 2)), max_size=4),
        st.integers(0, 3),
        st.sampled_from(["stands", "stands", "stands", "fails"]),
    ),
    max_size=8,
)


def canonical(kind: Any, row: Any) -> Any:
    """Return the row with the one NaN object that the library uses."""
    return kind(*(math.nan if value != value else value for value in row))


@examples(150)
@given(history=COMMITS, kind=st.sampled_from(KINDS), optimize=st.booleans())
def test_a_view_is_what_the_callable_makes_of_each_group(
    history: Any, kind: Any, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    table = db.table(kind, name="orders")
    view = table.group_by("town").reduce(totals).materialize("totals")
    refusing = table.where(lambda o: o.total == -1).select(lambda o: 1 // 0).materialize()
    replica = Replica(view)
    held: list[Any] = []
    for added, gone, end in history:
        rows = [canonical(kind, row) for row, times in added for _ in range(times)]
        left = held[min(gone, len(held)) :]
        try:
            with db.transaction():
                table.remove_all(held[: min(gone, len(held))])
                table.add_all(rows)
                if end == "fails":
                    table.add(kind("a", -1))
        except ZeroDivisionError:
            assert end == "fails"
        else:
            held = [*left, *rows]
        assert Counter(view) == expected(held)
        view.verify()
        replica.check()
    assert Counter(table.group_by("town").reduce(totals).materialize()) == expected(held)
    table.clear()
    assert view.stats().rows == 0 and not list(refusing)


@pytest.mark.parametrize("optimize", [True, False])
def test_a_callable_that_raises_names_the_group_and_takes_the_commit_back(optimize: bool) -> None:
    db = Database(optimize=optimize)
    numbers = db.table(int, name="numbers")
    shares = numbers.group_by(lambda n: n % 3).reduce(lambda key, rows: [12 // sum(rows)])
    view, counts = shares.materialize("shares"), numbers.aggregate(Count()).materialize()
    numbers.add_all([1, 2, 3, 4])
    before = sorted(view)
    with pytest.raises(ZeroDivisionError) as raised:
        numbers.add_all([-3, 7])
    assert "in reduce of view 'shares'" in raised.value.__notes__[0]
    assert raised.value.__notes__[0].endswith("in group 0")
    assert sorted(view) == before and counts.value == 4
    numbers.remove(3)
    assert sorted(view) == [(1, 2), (2, 6)]
    view.verify()


def test_a_key_that_raises_names_the_row() -> None:
    numbers = Database().table(int)
    view = numbers.group_by(lambda n: 6 // n).reduce(lambda key, rows: rows).materialize("v")
    numbers.add(3)
    with pytest.raises(ZeroDivisionError) as raised:
        numbers.add_all([1, 0])
    assert raised.value.__notes__[0].endswith("on row 0")
    assert list(view) == [(2, 3)]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (3, "this one returned 3\n  return a list of rows"),
        (None, r"returned nothing \(does it have a return\?\)"),
        ("text", "this one returned 'text'"),
        ([[1]], "unhashable type: 'list'"),
    ],
)
def test_what_a_callable_may_not_return(made: Any, message: str) -> None:
    numbers = Database().table(int)
    view = numbers.group_by(lambda n: 0).reduce(lambda key, rows: made).materialize()
    with pytest.raises(TypeError, match=message):
        numbers.add(1)
    assert not list(view) and not list(numbers)


def test_what_is_refused_when_it_is_made() -> None:
    numbers: Any = Database().table(int)
    with pytest.raises(PlanError, match="reduce calls its callable with 2 arguments, but"):
        numbers.group_by(lambda n: n).reduce(lambda rows: rows)
    with pytest.raises(PlanError, match="reduce takes a callable, not 3"):
        numbers.group_by(lambda n: n).reduce(3)
    with pytest.raises(PlanError, match="reads 'numbers', which is a Table"):
        numbers.group_by(lambda n: n).reduce(lambda key, rows: numbers)
    with pytest.raises(StratificationError, match="own aggregate\n  r -> reduce -> r"):
        fixpoint(
            lambda r: numbers.union(
                r.group_by(lambda n: n).reduce(lambda key, rows: [1]).select(lambda k, n: n)
            )
        )


def test_rows_of_several_bindings_are_tuples() -> None:
    db = Database()
    orders, rates = db.table(Order, name="orders"), db.table(Pair, name="rates")
    both = orders.join(rates, on="town")
    largest = both.group_by(lambda o, r: o.town).reduce(
        lambda town, rows: [max(o.total * r.total for o, r in rows)]
    )
    view = largest.where(lambda town, n: n > 3).materialize()
    orders.add_all([Order("a", 2), Order("b", 3), Order("a", 1)])
    rates.add_all([Pair("a", 2), Pair("b", 1)])
    assert list(view) == [("a", 4)]
    view.verify()


def test_rows_stay_that_are_equal_to_those_shown() -> None:
    numbers = Database().table(int)
    view = numbers.group_by(lambda n: 0).reduce(lambda key, rows: [bool(rows), len(rows)])
    told: list[Any] = []
    shown = view.materialize()
    with shown.subscribe(lambda delta: told.append(delta.items())):
        numbers.add(1)
        numbers.add(2)
    assert dict(told[0]) == {(0, True): 2}
    assert dict(told[1]) == {(0, True): -1, (0, 2): 1}


def test_rows_of_tables_that_are_not_stored_are_there_while_their_weight_is_positive() -> None:
    numbers = Database().table(int, stored=False)
    sizes = numbers.group_by(lambda n: n % 2).reduce(lambda key, rows: [sorted(rows).__len__()])
    view = sizes.materialize()
    numbers.remove(1)
    numbers.add_all([3, 3])
    assert list(view) == [(1, 2)]
    numbers.add(1, 2)
    assert list(view) == [(1, 3)]
    late = sizes.select(lambda key, n: n).materialize()
    assert list(late) == [3]
    numbers.remove_all([1, 3, 3])
    assert not list(view) and not list(late) and view.stats().rows == 0


def test_only_the_groups_that_change_are_looked_at() -> None:
    asked: list[Any] = []

    def size(key: int, rows: Multiset[int]) -> list[int]:
        asked.append(key)
        return [len(rows)]

    db = Database()
    numbers = db.table(int)
    view = numbers.group_by(lambda n: n % 100).reduce(size).materialize()
    numbers.add_all(range(1_000))
    before, asked[:] = view.stats().touched, []
    with db.transaction():
        numbers.add(2_007)
        numbers.add(2_107)
        numbers.add(3_001)
        numbers.remove(3_001)
    assert asked == [7]
    assert view.stats().touched - before <= 12 + 4
    assert view.count((7, 12)) == 1


def test_a_condition_on_the_key_is_asked_of_the_rows() -> None:
    orders = Database().table(Order, name="orders")
    one = orders.group_by("town").reduce(lambda town, rows: rows).where(lambda t, o: t == "a")
    assert "push_where_below_reduce" in str(one.explain())
    view = one.materialize()
    orders.add_all([Order("a", 1), Order("b", 2)])
    assert list(view) == [("a", Order("a", 1))] and view.stats().rows == 2
    view.verify()


def test_explain_and_the_place_of_a_part_elsewhere() -> None:
    db = Database(offload=Elsewhere())
    orders = db.table(Order, name="orders")
    query = orders.group_by("town").reduce(lambda town, rows: [len(rows)])
    assert "\n  reduce [len(rows)] by order.town\n    table orders" in str(query.explain())
    unread = orders.group_by("town").reduce(lambda town, rows: [max(o.total for o in rows)])
    assert "called as it is" not in str(unread.explain())  # nothing would be gained
    with pytest.raises(OffloadError, match="its groups are in the process, or in a whole fragment"):
        query.materialize().offload()


def test_an_operator_that_is_taken_back_is_as_it_was() -> None:
    def of(key: int, rows: Multiset[int]) -> list[int]:
        return [sum(rows)]

    operator = Reduce(lambda n: n % 2, of)
    operator.step([(1, 1), (2, 2), (3, 1)])
    operator.commit()
    before = sorted(operator.contents())
    operator.step([(1, -1), (3, -1), (4, 1)])
    operator.undo()
    assert sorted(operator.contents()) == before == [((0, 4), 1), ((1, 4), 1)]
    assert operator.step([(1, -1), (3, -1)]) == [((1, 4), -1)]
    operator.commit()
    assert operator.footprint()[0] == 1
