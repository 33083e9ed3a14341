"""Semi-joins and anti-joins by one comparison equal a test of all pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, Min
from tests.budget import seeds
from tests.thresholds import thresholds


class Left(NamedTuple):
    k: Any
    x: Any
    ok: bool


class Right(NamedTuple):
    k: Any
    y: Any
    ok: bool


Predicate = Callable[[Left, Right], Any]
PREDICATES: dict[str, Predicate] = {
    "less": lambda a, b: a.x < b.y,
    "turned": lambda a, b: b.y <= a.x,
    "by key": lambda a, b: a.k == b.k and a.x >= b.y,
    "test before": lambda a, b: a.k == b.k and b.ok and a.x <= b.y,
    "tests around": lambda a, b: a.ok and a.x > b.y and b.ok,
    "present": lambda a, b: a.x is not None and b.y is not None and a.x < b.y,
    "absent after": lambda a, b: a.x > b.y and b.y is not None and a.k == b.k,
    "negated": lambda a, b: a.k == b.k and not a.x < b.y,
    "computed": lambda a, b: a.k == b.k and (a.x, a.ok) < (b.y, b.ok),
}
NAN = float("nan")
VALUES: dict[str, Sequence[Any]] = {
    "int": range(8),
    "number": (0, 1, 1.0, 2.5, -3, Decimal("2.5"), True, 7, float("inf"), -0.0),
    "text": ("", "a", "b", "ä", "aa"),
    "nan": (0, 1.5, 2, NAN, 3),
    "none": (0, 1, 2, 3, None),
    "mixed": (0, 1, 2, 3, "a"),
}


def pairs_match(lefts: Sequence[Left], rights: Sequence[Right], on: Predicate) -> list[Left] | None:
    """The left rows with a partner, by asking all pairs; None if a pair raises."""
    try:
        asked = [(a, [bool(on(a, b)) for b in rights]) for a in lefts]
    except TypeError:
        return None
    return [a for a, found in asked if any(found)]


def bag(rows: Iterable[Any]) -> Counter[Any]:
    """Return rows as a bag that treats all NaNs as equal."""
    return Counter(tuple("nan" if value != value else value for value in row) for row in rows)


def failing(numbers: Any) -> Any:
    """A view that raises for 0 after joins of a key have been stepped."""
    counts = numbers.group_by(lambda n: n).aggregate(Count())
    least = counts.group_by(lambda n, count: count).aggregate(Min(lambda n, count: n))
    return least.select(lambda count, n: 1 // n).materialize()


class History:
    """Two tables with a semi-join and an anti-join, and lists with the same rows."""

    def __init__(self, random: Random, on: Predicate, values: Sequence[Any]) -> None:
        self.random, self.on, self.values = random, on, values
        self.db = Database()
        self.left: Any = self.db.table(Left, name="left")
        self.right: Any = self.db.table(Right, name="right")
        self.last: Any = self.db.table(int, name="last")
        self.semi = self.left.semi_join(self.right, on=on).materialize()
        self.anti = self.left.anti_join(self.right, on=on).materialize()
        self.fails = failing(self.last)
        self.rows: tuple[list[Any], list[Any]] = ([], [])

    def step(self) -> None:
        """Make one commit, which may be refused or undone."""
        random, now = self.random, (list(self.rows[0]), list(self.rows[1]))
        is_taken_back = random.random() < 0.2
        try:
            with self.db.transaction():
                for _ in range(random.choice((1, 1, 2, 5))):
                    self._change(now)
                if is_taken_back:
                    self.last.add(0)
        except ZeroDivisionError:
            assert is_taken_back
            return
        except TypeError:
            assert pairs_match(*now, self.on) is None
            return
        expected = pairs_match(*now, self.on)
        assert expected is not None
        self.rows = now
        assert bag(self.semi) == bag(expected)
        alone = list(now[0])
        for row in expected:
            alone.remove(row)
        assert bag(self.anti) == bag(alone)

    def _change(self, now: Any) -> None:
        random = self.random
        place = random.randrange(2)
        table, kind, rows = (self.left, self.right)[place], (Left, Right)[place], now[place]
        if rows and random.random() < 0.45:
            row = random.choice(rows)
            table.remove(row)
            rows.remove(row)
        else:
            row = kind(random.randrange(3), random.choice(self.values), random.random() < 0.7)
            table.add(row)
            rows.append(row)


@pytest.mark.long
@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("predicate", PREDICATES)
def test_rows_are_those_of_all_pairs(predicate: str, values: str) -> None:
    for seed in seeds(24):
        history = History(Random(seed), PREDICATES[predicate], VALUES[values])
        for _ in range(40):
            history.step()
        history.semi.verify()


@pytest.mark.parametrize("values", ["int", "number", "none", "mixed"])
@pytest.mark.parametrize("predicate", PREDICATES)
def test_rows_are_those_of_all_pairs_with_orders_from_the_first_row(
    predicate: str, values: str
) -> None:
    with thresholds({"reactive.engine.operators.bound_matching.FEW": 0}):
        for seed in seeds(12):
            history = History(Random(seed), PREDICATES[predicate], VALUES[values])
            for _ in range(40):
                history.step()


def test_a_fall_back_to_pairs_is_taken_back_with_its_commit() -> None:
    db = Database()
    left: Any = db.table(Left, name="left")
    right: Any = db.table(Right, name="right")
    last: Any = db.table(int, name="last")
    view = left.semi_join(right, on=lambda a, b: a.x < b.y).materialize()
    fails = failing(last)
    left.add_all([Left(0, n, True) for n in range(4)])
    right.add(Right(0, 2, True))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), db.transaction():
            left.remove(Left(0, 1, True))
            right.add(Right(0, NAN, True))
            last.add(0)
        assert [a.x for a in view] == [0, 1]
        right.add(Right(0, 3, True))
        assert [a.x for a in view] == [0, 1, 2]
        right.remove(Right(0, 3, True))
    right.add(Right(0, NAN, True))
    right.add(Right(0, 9, True))
    assert [a.x for a in view] == [0, 1, 2, 3]
    right.clear()
    assert not len(view)
    fails.close()


def test_the_bound_of_many_rows_is_found_in_their_order() -> None:
    for is_less in (True, False):
        db = Database()
        left: Any = db.table(Left, name="left")
        right: Any = db.table(Right, name="right")
        less: Predicate = lambda a, b: a.k == b.k and a.x <= b.y  # noqa: E731
        more: Predicate = lambda a, b: a.k == b.k and a.x >= b.y  # noqa: E731
        view = left.semi_join(right, on=less if is_less else more).materialize()
        left.add_all([Left(0, n, True) for n in range(200)])
        values = Random(3).sample(range(200), 100)
        right.add_all([Right(0, n, True) for n in values])
        for _ in range(95):
            bound = (max if is_less else min)(values)
            right.remove(Right(0, bound, True))
            values.remove(bound)
            if len(values) % 4 == 0:  # insert a new bound, or a copy of a present one
                values.append(bound - 1 if is_less else bound + 1)
                right.add(Right(0, values[-1], True))
            bound = (max if is_less else min)(values)
            assert len(view) == (bound + 1 if is_less else 200 - bound)


@pytest.mark.parametrize("kind", ["semi_join", "anti_join"])
@pytest.mark.parametrize("has_key", [True, False])
def test_a_change_touches_as_many_rows_of_larger_tables(kind: str, has_key: bool) -> None:
    counts = [_touched(kind, size, has_key=has_key) for size in (30, 3000)]
    assert counts[0] == counts[1]
    assert max(counts[0]) <= 4


def _touched(kind: str, size: int, *, has_key: bool) -> list[int]:
    """The rows touched by a change of each side that leaves the bound as it is."""
    db = Database()
    left: Any = db.table(Left, name="left")
    right: Any = db.table(Right, name="right")
    less: Predicate = lambda a, b: a.x < b.y  # noqa: E731
    keyed: Predicate = lambda a, b: a.k == b.k and a.x < b.y  # noqa: E731
    view = getattr(left, kind)(right, on=keyed if has_key else less).materialize()
    left.add_all([Left(n % 3, n, True) for n in range(size)])
    right.add_all([Right(n % 3, n, True) for n in range(size)])
    counts = []
    for table, row in (
        (left, Left(0, 5, False)),
        (right, Right(0, size // 2, False)),
        (right, Right(1, 0, False)),
    ):
        for change in (table.add, table.remove):
            before = view.stats().touched
            change(row)
            counts.append(view.stats().touched - before)
    return counts


EXTREMES: dict[str, Callable[[Any, Any], Any]] = {
    "semi_join": lambda left, right: left.semi_join(right, on=lambda a, b: a.x < b.y),
    "anti_join": lambda left, right: left.anti_join(right, on=lambda a, b: a.x >= b.y),
    "by key": lambda left, right: left.semi_join(right, on=lambda a, b: a.k == b.k and a.x > b.y),
    "any": lambda left, right: left.where(lambda a: any(a.x <= b.y for b in right)),
    "not any": lambda left, right: left.where(
        lambda a: not any(a.k == b.k and a.x < b.y for b in right)
    ),
    "all": lambda left, right: left.where(lambda a: all(a.x >= b.y for b in right if a.k == b.k)),
}


@pytest.mark.long
@pytest.mark.parametrize("form", EXTREMES)
def test_an_extreme_that_moves_touches_the_rows_whose_answer_changes(form: str) -> None:
    few, many = (_touched_by_extremes(form, size) for size in (100, 10_000))
    assert few == many
    assert max(many) <= 12


def _touched_by_extremes(form: str, size: int) -> list[int]:
    """Return the rows touched by changes of an extreme, and by changes between both extremes.

    The extreme changes by 3: inserted, deleted, or undone, once left and right rows have an order.
    The other changes are of left rows.
    """
    db = Database()
    left: Any = db.table(Left, name="left")
    right: Any = db.table(Right, name="right")
    view = EXTREMES[form](left, right).materialize()
    left.add_all([Left(0, n, True) for n in range(-size, size)])
    right.add_all([Right(0, n, True) for n in range(-49, 50)])
    extremes = [Right(0, 53, True), Right(0, -53, True)]
    for row in (*extremes, *extremes):
        right.add(row)
        right.remove(row)
    counts = []
    for row in extremes:
        for table, change in (
            (right, right.add),
            (left, left.remove),
            (left, left.add),
            (right, right.remove),
        ):
            before = view.stats().touched, set(view)
            change(row if table is right else Left(0, row.y - row.y // 26, True))
            counts.append(view.stats().touched - before[0])
            assert len(set(view) ^ before[1]) <= 4
    view.verify()
    return counts


def test_the_order_of_left_rows_goes_with_them() -> None:
    db = Database()
    left: Any = db.table(Left, name="left")
    right: Any = db.table(Right, name="right")
    view = left.semi_join(right, on=lambda a, b: a.x < b.y).materialize()
    rows = [Left(0, n, True) for n in range(200)]
    right.add(Right(0, 50, True))
    left.add_all(rows)
    held = view.stats().rows
    right.add(Right(0, 60, True))
    assert view.stats().rows >= held + 200
    left.remove_all(rows)
    right.clear()
    assert view.stats().rows == 0
