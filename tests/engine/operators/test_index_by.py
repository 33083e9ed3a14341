"""Joins by ranges: their results, errors, touched rows, and undone changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Count, Database, Sum
from tests.budget import examples

NAN = float("nan")
Rel = Any
ON: dict[str, Callable[[Any, Any], object]] = {
    "closed": lambda a, b: a[0] <= b[0] <= a[1],
    "half open": lambda a, b: a[0] <= b[0] < a[1],
    "half open the other way": lambda a, b: a[0] < b[0] and b[0] <= a[1],
    "open": lambda a, b: b[0] > a[0] and a[1] > b[0],
    "points on the left": lambda a, b: b[0] <= a[0] < b[1],
    "upper end first": lambda a, b: b[0] < a[1] and a[0] <= b[0],
    "overlap": lambda a, b: a[0] <= b[1] and b[0] < a[1],
    "band": lambda a, b: a[0] - 1 <= b[0] <= a[0] + 1,
    "from": lambda a, b: a[0] <= b[0],
    "from, open": lambda a, b: a[0] < b[0],
    "until": lambda a, b: a[0] > b[0],
    "until, closed": lambda a, b: a[0] >= b[0],
    "and more": lambda a, b: a[0] <= b[0] < a[1] and a[1] + b[1] != 4,
    "after tests": lambda a, b: a[1] > 0 and b[1] != 3 and a[0] <= b[0] < a[1],
    "after what cannot raise": lambda a, b: a != b and a[0] <= b[0] < a[1],
    "of tuples": lambda a, b: (a[0], a[1]) <= (b[0], b[1]) < (a[1], a[0]),
    "of both sides in one": lambda a, b: a[0] + b[0] < a[1],
    "after a sum of both sides": lambda a, b: a[1] + b[1] > 3 and a[0] <= b[0],
    "negated": lambda a, b: not a[0] <= b[0],
    "near": lambda a, b: abs(a[0] - b[0]) < 2,
    "guarded": lambda a, b: a[0] is not None and b[0] is not None and a[0] <= b[0],
}
NUMBERS = st.integers(0, 4)
MIXED = st.sampled_from([0, 1, 1.0, True, 2, 2.5, Decimal(2), Fraction(5, 2), 3, NAN])
ANY = st.sampled_from([0, 1, 2.0, 3, None, "a", NAN, Decimal("nan"), (1, 2), [1].__class__])


def way(relation: Rel) -> str:
    """Return the name of the operator that runs the join."""
    found: str = str(relation.explain()).partition("runs as\n  ")[2].split()[0]
    return found


@pytest.mark.parametrize("name", ON)
def test_a_join_by_ranges_is_run_by_them(name: str) -> None:
    a, b = tables(Database())
    assert way(a.join(b, on=ON[name])) == "intervals"


NOT: dict[str, Callable[[Any, Any], object]] = {
    "an equation": lambda a, b: a[1] == b[1] and a[0] <= b[0],
    "a product of both sides": lambda a, b: a[0] * b[0] < a[1],
    "of one side": lambda a, b: a[0] < a[1],
    "after what may raise": lambda a, b: a[1] % b[1] > 3 and a[0] <= b[0],
    "of a negated product": lambda a, b: not a[0] * b[1] <= a[1],
    "or": lambda a, b: a[0] <= b[0] or a[1] <= b[1],
}


@pytest.mark.parametrize("name", NOT)
def test_another_join_is_not(name: str) -> None:
    a, b = tables(Database())
    assert way(a.join(b, on=NOT[name])) == "probe"


@dataclass(frozen=True)
class Mine:
    """A value with comparisons of its own."""

    value: int

    def __le__(self, other: Mine) -> bool:
        if 13 in (self.value, other.value):
            raise ZeroDivisionError
        return self.value <= other.value


@dataclass(frozen=True)
class Annotated:
    mine: Mine
    number: int | None


def test_values_annotated_with_a_class_of_ones_own_are_asked_as_pairs() -> None:
    rows: Any = Database().table(Annotated)
    assert way(rows.join(rows, on=lambda a, b: a.mine <= b.mine)) == "probe"
    assert way(rows.join(rows, on=lambda a, b: a.number <= b.number)) == "intervals"


def tables(db: Database, *, stored: bool = True) -> tuple[Any, Any]:
    a = db.table(tuple, name="a", stored=stored)
    return a, db.table(tuple, name="b", stored=stored)


ROWS = st.tuples(NUMBERS, NUMBERS)
SIDES = st.sampled_from("ab")
FEW = examples(12)
CHANGES = st.lists(st.tuples(SIDES, ROWS, st.sampled_from((1, 1, 1, -1))), max_size=6)


def expected(a: Counter[Any], b: Counter[Any], on: Callable[[Any, Any], object]) -> dict[Any, int]:
    found = Counter[Any]()
    for x, times in a.items():
        for y, often in b.items():
            if times * often and on(x, y):
                found[x, y] += times * often
    return {pair: weight for pair, weight in found.items() if weight}


@pytest.mark.long
@pytest.mark.parametrize("name", ON)
@FEW
@given(st.lists(CHANGES, max_size=6))
def test_it_has_the_pairs_of_brute_force_after_every_commit(
    name: str, history: list[list[tuple[str, Any, int]]]
) -> None:
    """Insert and delete rows on both sides in one commit, several times, also absent copies."""
    db = Database()
    on, (a, b) = ON[name], tables(db)
    view = a.join(b, on=on).materialize()
    itself = a.join(a, on=on).materialize()
    count = a.join(b, on=on).group_by(lambda x, y: y[1]).aggregate(
        Count(), Sum(lambda x, y: x[0])
    ).materialize()  # fmt: skip
    late: list[Any] = []
    held = {"a": Counter[Any](), "b": Counter[Any]()}
    of = {"a": a, "b": b}
    for changes in history:
        with db.transaction():
            for side, row, weight in changes:
                if weight > 0:
                    of[side].add(row)
                elif held[side][row] > 0:
                    of[side].remove(row)
                else:
                    continue
                held[side][row] += weight
        late[1:] = []
        late.append(a.join(b, on=on).where(lambda x, y: x[0] != 9).materialize())
        pairs = expected(held["a"], held["b"], on)
        for shown in (view, *late):
            assert dict(Counter(shown)) == pairs
        assert dict(Counter(itself)) == expected(held["a"], held["a"], on)
        count.verify()


@pytest.mark.parametrize("name", ["half open", "overlap", "from", "points on the left"])
@FEW
@given(st.lists(CHANGES, max_size=6))
def test_weights_may_be_negative_over_tables_that_are_not_stored(
    name: str, history: list[list[tuple[str, Any, int]]]
) -> None:
    db, plain = Database(), Database(optimize=False)
    sums = []
    for database in (db, plain):
        a, b = tables(database, stored=False)
        joined = a.join(b, on=ON[name]).group_by(lambda x, y: x[1]).aggregate(Count())
        view = joined.materialize()
        for changes in history:
            with database.transaction():
                for side, row, weight in changes:
                    table = a if side == "a" else b
                    table.add(row) if weight > 0 else table.remove(row)
        sums.append(sorted(view))
    assert sums[0] == sums[1]


Change = tuple[str, Any, Any, bool]


def outcomes(optimize: bool, on: Any, history: list[list[Change]]) -> list[Any]:
    """Return the pairs after each commit, or that it raised; any of several errors may be first."""
    db = Database(optimize=optimize)
    a, b = tables(db)
    view = a.join(b, on=on).materialize()
    of, found = {"a": a, "b": b}, list[Any]()
    for changes in history:
        try:
            with db.transaction():
                for side, low, high, comes in changes:
                    if comes:
                        of[side].add((low, high))
                    else:
                        of[side].discard((low, high))
        except (TypeError, ArithmeticError):
            found.append("raises")
        else:
            found.append(sorted(map(repr, view)))
        assert sorted(map(repr, view)) == sorted(map(repr, a.join(b, on=on).materialize()))
    return found


@pytest.mark.long
@pytest.mark.parametrize("values", [MIXED, ANY], ids=["numbers", "anything"])
@pytest.mark.parametrize("name", ON)
@FEW
@given(st.data())
def test_it_raises_where_the_join_as_written_does(
    name: str, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    changes = st.lists(st.tuples(SIDES, values, values, st.booleans()), max_size=4)
    history = data.draw(st.lists(changes, max_size=5))
    assert outcomes(True, ON[name], history) == outcomes(False, ON[name], history)


class Row(NamedTuple):
    value: Any
    number: int


@FEW
@given(st.lists(st.lists(st.tuples(SIDES, ANY, NUMBERS), max_size=4), max_size=5))
def test_values_that_do_not_compare_may_be_kept_apart_by_the_predicate(history: Any) -> None:
    views = []
    for optimize in (True, False):
        db = Database(optimize=optimize)
        a, b = db.table(Row, name="a"), db.table(Row, name="b")
        joined = a.join(b, on=lambda x, y: type(x.value) is type(y.value) and x.value <= y.value)
        assert not optimize or way(joined) == "intervals"
        view, shown = joined.materialize(), []
        for changes in history:
            with suppress(TypeError, ArithmeticError), db.transaction():
                for side, value, number in changes:
                    (a if side == "a" else b).add(Row(value, number))
            shown.append(sorted(map(repr, view)))
        views.append(shown)
    assert views[0] == views[1]


def test_values_of_ones_own_that_raise_when_compared_leave_nothing_behind() -> None:
    db = Database()
    a, b = tables(db)
    view = a.join(b, on=lambda x, y: x[0] <= y[0]).materialize()
    a.add_all([(Mine(1), 0), (Mine(3), 0)])
    b.add((Mine(2), 0))
    pairs = [((Mine(1), 0), (Mine(2), 0))]
    assert list(view) == pairs
    for table in (a, b):
        with pytest.raises(ZeroDivisionError):
            table.add((Mine(13), 0))
        assert list(view) == pairs
        with pytest.raises(ZeroDivisionError):
            table.add_all([(Mine(0), 1), (Mine(13), 1)])
        assert list(view) == pairs
    b.add((Mine(4), 0))
    a.remove((Mine(1), 0))
    assert sorted((x[0].value, y[0].value) for x, y in view) == [(3, 4)]
    view.verify()


def test_a_commit_that_another_view_refuses_is_taken_back_in_the_indexes() -> None:
    db = Database()
    a, b = tables(db)
    view = a.join(b, on=lambda x, y: x[0] <= y[0] < x[1]).materialize()
    refusing = b.where(lambda y: 10 // y[1] > 0).materialize()
    a.add_all((n, n + 3) for n in range(100))
    b.add_all((n, 1) for n in range(0, 100, 7))
    before = Counter(view)
    with pytest.raises(ZeroDivisionError), db.transaction():
        a.add((5, 90))
        a.remove((7, 10))
        b.remove((7, 1))
        b.add_all([(8, 1), (9, 0)])
    assert Counter(view) == before
    b.add((8, 1))
    a.remove((7, 10))
    view.verify()
    refusing.verify()


REFUSED = [(None, TypeError), ("a", TypeError), (Decimal("nan"), ArithmeticError)]


@pytest.mark.parametrize(("value", "error"), REFUSED, ids=repr)
@pytest.mark.parametrize("name", ["half open", "overlap", "from", "after tests"])
def test_a_value_that_does_not_compare_raises_what_it_raises_as_written(
    name: str, value: Any, error: type[Exception]
) -> None:
    told = []
    for optimize in (True, False):
        db = Database(optimize=optimize)
        a, b = tables(db)
        view = a.join(b, on=ON[name]).materialize()
        a.add_all([(1, 5), (4, 7)])
        b.add((1, 2))
        with pytest.raises(error) as caught:
            b.add((value, value))
        told.append((str(caught.value), caught.value.__notes__[0].partition(" (")[0], len(view)))
        b.add((4, 6))
        view.verify()
    assert told[0] == told[1]


def test_times_of_zones_are_compared_as_written() -> None:
    zones = [None, UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")]
    times = [datetime(2024, 10, 27, hour, tzinfo=zone) for zone in zones[1:] for hour in range(5)]
    db = Database()
    a, b = tables(db)
    view = a.join(b, on=lambda x, y: x[0] <= y[0] < x[1]).materialize()
    a.add_all((one, other) for one in times[::2] for other in times[::3])
    b.add_all((time, 0) for time in times)
    view.verify()
    before = len(view)
    with pytest.raises(TypeError, match="naive"):
        b.add((datetime(2024, 10, 27), 0))
    assert len(view) == before


def touched(size: int, on: Any) -> list[int]:
    """Return the rows touched by an inserted, updated and deleted row, on either side."""
    db = Database()
    a, b = tables(db)
    a.add_all((10 * n, 10 * n + 15) for n in range(size))
    b.add_all((10 * n, 10 * n + 1) for n in range(size))
    view = a.join(b, on=on).materialize()
    counts = []
    changes: list[Callable[[], None]] = [
        lambda: a.add((7, 33)),
        lambda: a.update((7, 33), (8, 22)),
        lambda: a.remove((8, 22)),
        lambda: b.add((25, 27)),
        lambda: b.remove((25, 27)),
    ]
    for change in changes:
        before = view.stats().touched
        change()
        counts.append(view.stats().touched - before)
    view.verify()
    return counts


@pytest.mark.long
@pytest.mark.parametrize("name", ["half open", "closed", "open", "overlap", "band", "after tests"])
def test_one_change_touches_as_much_in_tables_100_times_larger(name: str) -> None:
    few = touched(8, ON[name])
    assert few == touched(800, ON[name])
    assert max(few) <= 14


def test_many_ties_at_an_open_end_are_not_touched() -> None:
    db = Database()
    a, b = tables(db)
    view = a.join(b, on=lambda x, y: x[0] < y[0] < x[1]).materialize()
    a.add_all((5, 9 + n) for n in range(1_000))
    b.add_all((5, n) for n in range(1_000))
    before = view.stats().touched
    b.add((5, -1))
    a.add((5, 6))
    assert (view.stats().touched - before, len(view)) == (4, 0)


def test_what_is_not_comparable_costs_all_pairs_only_while_it_is_there() -> None:
    db = Database()
    a, b = tables(db)
    view = a.join(b, on=lambda x, y: x[0] <= y[0] < x[1]).materialize()
    a.add_all((n, n + 2) for n in range(500))
    b.add_all((n, 0) for n in range(500))
    a.add((NAN, 7))
    before = view.stats().touched
    b.add((9, 9))
    assert view.stats().touched - before < 12
    a.remove((NAN, 7))
    b.add((8, 9))
    view.verify()


def test_a_join_of_a_join_is_found_by_ranges() -> None:
    db = Database()
    a, b = tables(db)
    pairs = a.join(b, on=lambda x, y: x[1] == y[1])
    joined = pairs.join(a, on=lambda x, y, z: z[0] <= y[0] < z[1] and x != z)
    view = joined.materialize()
    a.add_all((n, n + 2) for n in range(9))
    b.add_all((n, n % 5) for n in range(9))
    assert way(joined) == "intervals"
    view.verify()
    b.remove((3, 3))
    a.remove((2, 4))
    view.verify()


def test_joins_by_the_same_range_share_their_indexes() -> None:
    db = Database()
    a, b = tables(db)
    views = [
        a.join(b, on=lambda x, y: x[0] <= y[0] < x[1]).materialize(),
        a.join(b, on=lambda x, y: x[0] <= y[0] < x[1] and x[1] != y[1]).materialize(),
    ]
    a.add((1, 5))
    b.add((2, 5))
    assert list(map(len, views)) == [1, 0]
    indexes = {type(node.operator).__name__ for node, _ in a._node.consumers}
    assert (indexes, len(a._node.consumers), len(b._node.consumers)) == ({"IndexBy"}, 1, 1)
