"""Simplification by constants, and expressions that only look as if they could be simplified."""

from __future__ import annotations

from typing import Any

from reactive import Database


class Odd:
    """A value whose comparisons are no truth values."""

    def __gt__(self, other: object) -> Any:
        return "greater"

    def __ge__(self, other: object) -> Any:
        return ""


def test_not_not_of_an_order_gives_a_truth_value_and_not_what_the_order_gave() -> None:
    db = Database()
    odd = db.table(Odd, name="odd", identity=True)
    view = odd.select(lambda o: (not not o > 1, not not o >= 1)).materialize()  # noqa: SIM208
    odd.add(Odd())
    assert list(view) == [(True, False)]
    view.verify()


MILLION = int("1000000")


def test_is_asks_for_the_very_object_that_was_captured() -> None:
    db = Database()
    numbers = db.table(tuple, name="numbers")
    views = [
        numbers.where(lambda n: n[0] is MILLION).materialize(),
        numbers.where(lambda n: n[0] is not MILLION).materialize(),
    ]
    numbers.add_all([(MILLION, 1), (int("1000000"), 2)])
    assert [[n for _, n in view] for view in views] == [[1], [2]]


def test_is_none_of_a_constant_is_decided() -> None:
    pairs = Database().table(tuple, name="pairs").select(lambda p: (3, p))
    view = pairs.where(lambda q: q[0] is not None and q[0] is not True).materialize()
    assert " is " not in str(view.explain(code=True))


def test_a_constant_that_none_is_compared_with_makes_no_warning() -> None:
    pairs = Database().table(tuple, name="pairs")
    made = pairs.select(lambda p: (3, p[0])).where(lambda q: q[0] is None or q[1] > 1).materialize()
    pairs.add((2,))
    assert list(made) == [(3, 2)]


def test_a_tuple_that_is_written_out_is_not_none() -> None:
    numbers = Database().table(int, name="numbers")
    rows = numbers.select(lambda n: (n, 1) if (n, 2) is not None else n / 0)
    assert "None" not in str(rows.explain()).partition("optimized")[2]
    view = rows.materialize()
    numbers.add(3)
    assert list(view) == [(3, 1)]
