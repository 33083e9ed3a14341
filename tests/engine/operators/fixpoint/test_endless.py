"""A recursion that does not settle is stopped and rolled back, and so is one that raises."""

from __future__ import annotations

from typing import Any

import pytest

from reactive import Database, FixpointError, Table, fixpoint
from tests.errors.golden import refused

Rel = Any


def counting(numbers: Rel, limit: int, **options: Any) -> Rel:
    """Return all numbers from the given ones up to a limit."""
    return fixpoint(
        lambda count: numbers.union(count.select(lambda n: n + 1).where(lambda n: n < limit)),
        **options,
    )


def test_a_recursion_without_end_is_stopped_and_rolled_back() -> None:
    db = Database()
    numbers: Table[int] = db.table(int, name="numbers")
    others: Table[int] = db.table(int, name="others")
    view = counting(numbers, 10**9, max_rounds=50).materialize("count")
    beside = others.union_all(numbers).materialize()
    heard: list[Any] = []
    with view.subscribe(heard.append), beside.subscribe(heard.append):
        with (
            refused(
                """
                FixpointError: fixpoint 'count' has not come to an end after 50 rounds
                  rows that still arrive: 57
                  transaction rolled back: no table or view changed
                  bound what the step makes of a row, or raise max_rounds=
                """
            ),
            db.transaction(),
        ):
            others.add(3)
            numbers.add(7)
        assert (list(view), list(beside), list(numbers), list(others)) == ([], [], [], [])
        assert (heard, view.stats().rows, db.version) == ([], 0, 0)
        others.add(3)
    assert len(heard) == 1
    assert list(beside) == [3]


def test_of_many_rows_that_still_arrive_a_few_are_named() -> None:
    words: Table[str] = Database().table(str, name="words")
    left, right = fixpoint(
        lambda left, right: (
            words.union(right.select_many(lambda w: [w + "a", w + "b"])),
            left.select_many(lambda w: [w + "c", w + "d"]),
        ),
        max_rounds=4,
    )
    view = left.union(right).materialize()
    with pytest.raises(FixpointError) as caught:
        words.add("")
    first, rows, *_ = str(caught.value).splitlines()
    assert first == "fixpoint 'left', 'right' has not come to an end after 4 rounds"
    assert rows == "  rows that still arrive: 'caca', 'cacb', 'cada', ..."
    assert len(view) == 0


def test_the_next_commit_after_a_recursion_without_end_works() -> None:
    """Steps lead from all numbers of a bound and above; down they end, and up they do not."""
    db = Database()
    numbers: Table[int] = db.table(int, name="numbers")
    steps: Table[Any] = db.table(tuple, name="steps")
    walk: Rel = fixpoint(
        lambda walk: numbers.union(
            walk.join(steps, on=lambda n, s: n >= s[0]).select(lambda n, s: n + s[1])
        ),
        max_rounds=30,
    )
    view = walk.materialize()
    numbers.add(7)
    steps.add((3, -1))
    assert sorted(view) == [2, 3, 4, 5, 6, 7]
    for _ in range(3):
        with pytest.raises(FixpointError):
            steps.add((3, 4))
        with pytest.raises(FixpointError):
            steps.update((3, -1), (3, 1))
        assert (sorted(view), list(steps)) == ([2, 3, 4, 5, 6, 7], [(3, -1)])
        view.verify()
    steps.add((5, -3))
    assert sorted(view) == [2, 3, 4, 5, 6, 7]
    steps.remove((3, -1))
    assert sorted(view) == [4, 7]
    steps.add((4, -4))
    assert sorted(view) == [0, 3, 4, 7]
    numbers.clear()
    steps.clear()
    assert (list(view), view.stats().rows) == ([], 0)


def test_so_many_rounds_as_are_allowed_are_enough() -> None:
    db = Database()
    numbers: Table[int] = db.table(int, name="numbers")
    view = counting(numbers, 100, max_rounds=100).materialize()
    numbers.add(0)
    assert len(view) == 100
    numbers.clear()
    numbers.add(50)
    assert len(view) == 50
    other = counting(numbers, 100, max_rounds=20)
    with pytest.raises(FixpointError):
        other.materialize()
    assert len(db.views()) == 1


def test_the_default_allows_ten_thousand_rounds() -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    view = counting(numbers, 10**9).materialize()
    with pytest.raises(FixpointError, match=r"10,?000"):
        numbers.add(0)
    assert (list(view), list(numbers)) == ([], [])


def test_a_view_over_data_that_never_settles_leaves_nothing_behind() -> None:
    db = Database()
    numbers: Table[int] = db.table(int, name="numbers")
    numbers.add(1)
    with pytest.raises(FixpointError):
        counting(numbers, 10**9, max_rounds=10).materialize()
    assert (db.views(), len(db._engine.graph._nodes)) == ([], 0)
    numbers.remove(1)
    view = counting(numbers, 10**9, max_rounds=10).materialize()
    assert list(view) == []


def test_an_exception_in_a_round_is_told_with_its_row_and_view() -> None:
    numbers: Table[int] = Database().table(int, name="numbers")
    view = fixpoint(
        lambda count: numbers.union(count.select(lambda n: n - 1 + 0 // (n - 3)))
    ).materialize("down")
    with pytest.raises(ZeroDivisionError) as caught:
        numbers.add(7)
    notes = "\n".join(caught.value.__notes__)
    assert "in select of view 'down' (test_endless.py:" in notes
    assert "on row 3" in notes
    assert "transaction rolled back: no table or view changed" in notes
    assert (list(view), list(numbers)) == ([], [])


GROWING: dict[str, tuple[Any, Any]] = {
    "squares": (2, lambda n: n * n),
    "texts": ("ab", lambda text: text + text),
    "pairs of one object": ((), lambda pair: (pair, pair)),
}


@pytest.mark.parametrize("name", GROWING)
def test_values_that_grow_by_a_factor_are_stopped(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand rounds of them would never end."""
    monkeypatch.setattr("reactive.engine.operators.fixpoint.growth.MOST_BYTES", 50_000)
    first, larger = GROWING[name]
    given: Table[Any] = Database().table(object, name="given")
    view = fixpoint(lambda rows: given.union(rows.select(larger))).materialize("grown")
    with pytest.raises(FixpointError, match=r"with rows of more than 50,000 bytes\n"):
        given.add(first)
    assert (len(given), len(view)) == (0, 0)


def test_rows_that_multiply_are_stopped_by_the_rows_of_the_inputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reactive.engine.operators.fixpoint.growth.ROWS_PER_GIVEN", 1_000)
    db = Database()
    limits: Table[int] = db.table(int, name="limits")
    starts: Table[int] = db.table(int, name="starts")
    view = fixpoint(
        lambda tree: starts.union(
            tree.anti_join(limits, on=lambda n, m: n // 2 == m // 2).select_many(
                lambda n: [2 * n, 2 * n + 1]
            )
        )
    ).materialize("tree")
    with pytest.raises(FixpointError, match=r"'tree' has not come to an end with [0-9,]+ rows\n"):
        starts.add(1)
    assert not len(view)
    limits.add_all(range(2**12, 2**13))
    starts.add(1)
    assert len(view) == 2**13 - 1
    view.verify()


def test_a_number_of_too_many_digits_is_shown_by_its_bits() -> None:
    given: Table[Any] = Database().table(object, name="given")
    view = fixpoint(
        lambda rows: given.union(rows.select(lambda r: (r[0] + 1, r[1] << 9))), max_rounds=4_000
    ).materialize("grown")
    with pytest.raises(FixpointError, match=r"that still arrive: \(4001, <int of 36,001 bits>\)"):
        given.add((1, 1))
    assert not len(view)
