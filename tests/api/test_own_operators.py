"""Operators of one's own over generated histories, against what they are from scratch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    Count,
    Database,
    Operator,
    PlanError,
    StratificationError,
    VerificationError,
    fixpoint,
)
from reactive.testing import check_operator
from tests.budget import examples
from tests.moments import Moments
from tests.thresholds import LOWEST, thresholds

Delta = list[tuple[Any, int]]


class Matches(Operator[Any, tuple[Any, int, int]]):
    """Emit each value that both inputs have, with its number in each."""

    def __init__(self, refused: Any = "refused") -> None:
        self.refused = refused
        self.weights: tuple[Counter[Any], Counter[Any]] = (Counter(), Counter())

    def step(self, left: Delta, right: Delta) -> Iterable[tuple[tuple[Any, int, int], int]]:
        changed = dict.fromkeys(row for delta in (left, right) for row, _ in delta)
        before = [self._row(row) for row in changed]
        for place, delta in enumerate((left, right)):
            for row, weight in delta:
                if row == self.refused:
                    raise ValueError("a row is refused")
                weights = self.weights[place]
                weights[row] += weight
                if not weights[row]:
                    del weights[row]
        for row in before:
            if row is not None:
                yield row, -1
        for row in map(self._row, changed):
            if row is not None:
                yield row, 1

    def _row(self, row: Any) -> tuple[Any, int, int] | None:
        left, right = (weights[row] for weights in self.weights)
        return (row, left, right) if left and right else None


def matches(left: Iterable[Any], right: Iterable[Any]) -> Counter[Any]:
    one, other = Counter(left), Counter(right)
    return Counter((row, one[row], other[row]) for row in one if row in other)


class Logged(Matches):
    """The same with an `undo` and `contents` of its own."""

    last: tuple[Delta, Delta] = ([], [])

    def step(self, left: Delta, right: Delta) -> Any:
        self.saved = tuple(weights.copy() for weights in self.weights)
        return super().step(left, right)

    def undo(self) -> None:
        self.weights = self.saved  # type: ignore[assignment]

    def contents(self) -> Any:
        return [(row, 1) for value in self.weights[0] if (row := self._row(value)) is not None]


VALUES = st.sampled_from([0, 1, 1.0, None, float("nan"), "refused", (1, 2)])
COMMITS = st.lists(
    st.tuples(
        st.lists(st.tuples(st.booleans(), VALUES, st.sampled_from([1, 1, 2, -1])), max_size=4),
        st.sampled_from(["commit", "commit", "roll back", "fail above"]),
    ),
    max_size=8,
)


@pytest.mark.parametrize("operator", [Matches, Logged])
@pytest.mark.parametrize("given_settings", [{}, LOWEST], ids=["as shipped", "at their lowest"])
@examples(15)
@given(commits=COMMITS)
def test_the_rows_are_those_from_scratch_after_every_commit(
    given_settings: dict[str, int], operator: Any, commits: list[tuple[list[Any], str]]
) -> None:
    with thresholds(given_settings), Database(strict=True) as db:
        left, right = db.table(object, name="left"), db.table(object, name="right")
        made = left.through(operator, right)
        view, counts = made.materialize(), made.aggregate(Count()).materialize()
        groups = left.group_by(lambda row: row == 1).through(Longest).materialize()
        above = db.table(object, name="above")
        refusing = made.union_all(above).where(lambda row: 1 // (row != "fail")).materialize()
        for changes, end in commits:
            before = view.snapshot()
            try:
                with db.transaction():
                    for is_left, row, weight in changes:
                        table = left if is_left else right
                        if weight > 0:
                            table.add(row, weight)
                        else:
                            table.discard(row)
                    if end == "roll back":
                        raise LookupError
                    if end == "fail above":
                        above.add("fail")
            except (ValueError, LookupError, ZeroDivisionError):
                assert Counter(view.snapshot()) == Counter(before)
            expected = matches(left, right)
            assert Counter(view) == expected
            assert counts.value == sum(expected.values())
            late = made.select(lambda row: row[0]).materialize()
            assert Counter(late) == Counter(row[0] for row in expected.elements())
            parts = [[row for row in left if (row == 1) is is_one] for is_one in (True, False)]
            shown = [(p[0] == 1, len(p)) for p in parts if p]
            assert sorted(groups) == sorted(shown)
            for each in (view, counts, groups, refusing):
                each.verify()


class Longest(Operator[Any, int]):
    """Emit the number of rows; of a relation without rows, 0."""

    count: int | None = None

    def step(self, rows: Delta) -> Delta:
        before, self.count = self.count, (self.count or 0) + sum(weight for _, weight in rows)
        return [(self.count, 1)] if before is None else [(before, -1), (self.count, 1)]


def test_an_interrupt_at_any_moment_leaves_the_rows_of_a_commit() -> None:
    for moment in range(0, 900, 13):
        with Database() as db:
            left, right = db.table(object, name="left"), db.table(object, name="right")
            view = left.through(Matches, right).materialize()
            left.add_all([1, 2, 3])
            right.add_all([1, 2])
            try:
                with Moments(moment), db.transaction():
                    left.remove(1)
                    right.add_all([3, 3])
            except KeyboardInterrupt:
                pass
            assert Counter(view) == matches(left, right)
            left.add(1)
            assert Counter(view) == matches(left, right)
            view.verify()


def test_histories_find_an_operator_that_depends_on_the_order() -> None:
    class Newest(Operator[int, int]):
        last: int | None = None

        def step(self, rows: Delta) -> Delta:
            changes = [] if self.last is None else [(self.last, -1)]
            self.last = max((row for row, weight in rows if weight > 0), default=self.last)
            return changes if self.last is None else [*changes, (self.last, 1)]

    with pytest.raises(VerificationError, match=r"(?s)Newest: .*after this history:\n    commit"):
        check_operator(Newest, range(3))
    check_operator(Matches, range(4), range(4), expected=lambda a, b: matches(a, b).elements())
    check_operator(Logged, range(4), range(4), expected=lambda a, b: matches(a, b).elements())
    with pytest.raises(VerificationError, match="its rows are not the expected ones"):
        check_operator(Matches, range(4), range(4), expected=lambda a, b: matches(b, a))


def test_equal_operators_over_equal_relations_are_one() -> None:
    db = Database()
    left, right = db.table(int, name="left"), db.table(int, name="right")
    same = [left.through(Matches, right, refused=7).plan for _ in range(2)]
    assert same[0] == same[1] and hash(same[0]) == hash(same[1])
    assert left.through(Matches, right, refused=8).plan != same[0]
    assert left.through(Logged, right, refused=7).plan != same[0]


def test_a_durable_view_through_an_operator_is_there_when_opened_again(tmp_path: Path) -> None:
    for _ in range(2):
        with Database(tmp_path / "rows.db") as db:
            left, right = db.table(int, name="left"), db.table(int, name="right")
            made = left.through(Matches, right)
            view = made.materialize("view")
            above = made.group_by(lambda row: row[1]).aggregate(Count())
            counts = above.materialize("counts")
            left.add_all([1, 2])
            right.add(2)
            assert Counter(view) == matches(left, right)
            counts.verify()


class Negative(Operator[int, int]):
    def step(self, rows: Delta) -> Delta:
        return [(row, -weight) for row, weight in rows]


class NoPair(Operator[int, int]):
    def step(self, rows: Delta) -> Any:
        return [row for row, _ in rows]


def test_a_wrong_delta_is_refused() -> None:
    db = Database(strict=True)
    rows = db.table(int, name="rows")
    view, of_pairs = rows.through(Negative).materialize(), rows.through(NoPair)
    with pytest.raises(VerificationError, match=r"Negative.step deleted 3 1 times"):
        rows.add(3)
    assert (list(rows), list(view)) == ([], [])
    view.close()
    rows.add(3)
    with pytest.raises(TypeError, match=r"NoPair.step returned 3, no pair of a row and a weight"):
        of_pairs.materialize()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rows: rows.through(3), "takes a class derived from Operator, not 3"),
        (lambda rows: rows.through(Negative()), r"not Negative\(\.\.\.\)"),
        (lambda rows: rows.through(Negative, rows), r"does not take 2 deltas: step\(rows"),
        (lambda rows: rows.through(Negative, size=3), "cannot make Negative: "),
        (lambda rows: rows.through(Matches, Database().table(int)), "of two databases"),
    ],
)
def test_a_wrong_call_is_refused(call: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        call(Database().table(int, name="rows"))


def test_a_recursion_through_an_operator_is_refused() -> None:
    rows = Database().table(int, name="rows")
    with pytest.raises(StratificationError, match=re.escape("r -> through -> r\n  move the op")):
        fixpoint(lambda r: rows.union(r.through(Negative)))


def test_errors_and_plans_name_the_operator() -> None:
    rows = Database().table(int, name="rows")
    of_all, of_each = (
        rows.through(Lengths, of=7),
        rows.group_by(lambda row: row % 2).through(NoPair),
    )
    assert "    through Lengths(of=7)\n" in str(of_all.explain())
    assert "through NoPair() by row % 2\n" in str(of_each.explain())
    view = of_all.materialize("lengths")
    with pytest.raises(TypeError) as caught:
        rows.add(7)
    assert "in through Lengths(of=7) of view 'lengths'" in caught.value.__notes__[0]
    assert (list(rows), list(view)) == ([], [])
    rows.add(3)
    with pytest.raises(TypeError, match=r"Lengths.step returned 3, no pairs of a row and a weight"):
        rows.through(Lengths, of=0).materialize()


class Lengths(Operator[int, int]):
    def __init__(self, of: int) -> None:
        self.of = of

    def step(self, rows: Delta) -> Any:
        return [(len(row), 1) for row, _ in rows if row == self.of] if self.of else 3


def test_a_commit_stands_if_the_commit_of_an_operator_raises() -> None:
    db = Database()
    rows = db.table(int, name="rows")
    views = [rows.through(Raising).materialize(), rows.select(lambda row: row).materialize()]
    rows.add(1)
    Raising.is_armed = True
    with pytest.raises(LookupError):
        rows.add(5)
    for view in views:
        assert sorted(view) == [1, 5]
    rows.remove(1)
    for view in views:
        view.verify()


class Raising(Operator[int, int]):
    """Emit the rows; raise in the next commit."""

    is_armed: ClassVar[bool] = False

    def step(self, rows: Delta) -> Delta:
        return rows

    def commit(self) -> None:
        if Raising.is_armed:
            Raising.is_armed = False
            raise LookupError


def test_a_condition_on_the_key_of_groups_goes_below_the_operators() -> None:
    rows = Database().table(int, name="rows")
    made = rows.group_by(lambda row: row % 2).through(Longest).where(lambda odd, _: odd == 1)
    assert "push_where_below_reduce" in str(made.explain())
    view = made.materialize()
    rows.add_all(range(5))
    assert list(view) == [(1, 2)]
    assert view.stats().rows > 0
