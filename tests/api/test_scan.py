"""`w.scan` and `w.ema`: states after each row, beside a fold of sorted lists from scratch."""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import accumulate, pairwise
from random import Random
from types import FrameType
from typing import Any, NamedTuple

import pytest

from reactive import Database, PlanError, desc, live
from tests.api.test_over import NAN, SORTS, Rows, Score, drawn_row, parts_in_order, played_steps
from tests.budget import seeds
from tests.thresholds import THRESHOLDS, thresholds


class State(NamedTuple):
    """A state of two values, one of which may be NaN."""

    past: int
    last: float | None


def floor(balance: int, points: int) -> int:
    return max(0, balance + points - 6)


def switched(on: bool, points: int) -> bool:
    return points >= 8 if not on else points > 3


def counted(state: State, price: float | None) -> State:
    return State(0 if price == 2.0 else state.past + 1, price)


def joined(text: str, part: Any) -> str:
    return f"{text},{part}"[-12:]


def averaged(mean: float | None, price: float | None) -> float | None:
    if price is None:
        return mean
    return price if mean is None else mean * 0.75 + price * 0.25


def with_price(state: tuple[Any, ...], pair: tuple[int, float | None]) -> tuple[Any, ...]:
    return (*state, pair)[-2:]


Call = Callable[[Score, Any], Any]
Folding = tuple[Callable[[Score], Any], Callable[[Any, Any], Any], tuple[Any, ...]]
"""The value of a row, the step, and the first state, if there is one."""
SCANS: dict[str, tuple[Call, Folding]] = {
    "floor": (
        lambda s, w: (s, w.scan(s.points, floor, 3)),
        (lambda r: r.points, floor, (3,)),
    ),
    "hysteresis": (
        lambda s, w: (s, w.scan(s.points, lambda on, x: x >= 8 if not on else x > 3, start=False)),
        (lambda r: r.points, switched, (False,)),
    ),
    "records": (
        lambda s, w: (s, w.scan(s.price, counted, State(0, 0.5))),
        (lambda r: r.price, counted, (State(0, 0.5),)),
    ),
    "texts": (
        lambda s, w: (s, w.scan(s.price, joined, "")),
        (lambda r: r.price, joined, ("",)),
    ),
    "sum": (
        lambda s, w: (s, w.scan(s.points, operator.add)),
        (lambda r: r.points, operator.add, ()),
    ),
    "max": (lambda s, w: (s, w.scan(s.points, max)), (lambda r: r.points, max, ())),
    "a pair": (
        lambda s, w: (s, w.scan((s.id, s.price), with_price, ())),
        (lambda r: (r.id, r.price), with_price, ((),)),
    ),
    "ema": (
        lambda s, w: (s, w.ema(s.price, alpha=0.25)),
        (lambda r: r.price, averaged, (None,)),
    ),
    "rows": (
        lambda s, w: (s, w.scan(s, lambda best, s: s if s.points > best.points else best)),
        (lambda r: r, lambda best, r: r if r.points > best.points else best, ()),
    ),
}


def expected(rows: Rows, sort: str, folding: Folding) -> Counter[str]:
    _, by, key = SORTS[sort]
    value, step, start = folding
    found = Counter[str]()
    for part in parts_in_order(rows, by, key):
        values = list(map(value, part))
        states = list(accumulate([*start, *values], step))[len(start) :]
        found.update(repr(pair) for pair in zip(part, states, strict=True))
    return found


@pytest.mark.parametrize("seed", seeds(40, 6))
def test_states_after_each_change_are_those_of_a_fold_from_scratch(seed: int) -> None:
    """Ties, None, NaN, duplicates; a commit in four is rolled back, another is refused."""
    play(Random(seed))


@pytest.mark.parametrize("seed", seeds(20, 3))
def test_states_are_those_of_a_fold_with_few_rows_in_a_chunk(seed: int) -> None:
    lowest = {name: each.lowest for name, each in THRESHOLDS.items() if ".windows." in name}
    with thresholds(lowest):
        play(Random(seed))


def play(random: Random) -> None:
    db = Database(optimize=random.random() < 0.8)
    scores = db.table(Score, name="scores")
    scores.add_all([drawn_row(random) for _ in range(random.choice([0, 3, 60]))])
    views = {}
    for sort in random.sample(sorted(SORTS), 2):
        for name, (call, folding) in SCANS.items():
            made = SORTS[sort][0](scores).select(call)
            views[name, sort] = (made.materialize(), folding)
    refusing = scores.select(lambda s: 1 // (s.points - 99)).materialize()
    for step in played_steps(random, db, scores, 10):
        for (name, sort), (view, folding) in views.items():
            assert Counter(map(repr, view)) == expected(list(scores), sort, folding), (name, sort)
            if step in (3, 9):
                view.verify()
    assert not refusing.closed


# Work: calls of the step.


class Move(NamedTuple):
    at: int
    amount: int


def calls_of(step: Callable[..., Any], run: Callable[[], object]) -> int:
    """Return the number of calls of a function of Python."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code.co_code == step.__code__.co_code

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def bounded(level: int, amount: int) -> int:
    return min(10, max(0, level + amount))


def unbounded(level: int, amount: int) -> int:
    return level + amount


@pytest.mark.parametrize("size", [300, 3_000])
def test_a_row_at_the_end_costs_one_call(size: int) -> None:
    moves = Database().table(Move, name="moves")
    moves.add_all([Move(n, 1) for n in range(size)])
    view = moves.over(order="at").select(lambda m, w: w.scan(m.amount, unbounded, 0)).materialize()
    assert calls_of(unbounded, lambda: moves.add(Move(size, 2))) == 1
    assert calls_of(unbounded, lambda: moves.remove(Move(size, 2))) == 0
    assert calls_of(unbounded, lambda: moves.add_all([Move(size + n, 1) for n in (2, 0, 1)])) == 3
    view.verify()


@pytest.mark.parametrize("size", [300, 3_000])
def test_a_row_inside_costs_the_rows_whose_states_it_changes(size: int) -> None:
    """The level is 10 from the tenth row on: what happens before is soon forgotten."""
    moves = Database().table(Move, name="moves")
    moves.add_all([Move(2 * n, 1) for n in range(size)])
    bound = moves.over(order="at").select(lambda m, w: w.scan(m.amount, bounded, 0)).materialize()
    every = moves.over(order="at").select(lambda m, w: w.scan(m.amount, unbounded, 0)).materialize()
    assert calls_of(bounded, lambda: moves.add(Move(21, -4))) == 5
    assert calls_of(bounded, lambda: moves.update(Move(21, -4), Move(21, 0))) == 5
    assert calls_of(bounded, lambda: moves.remove(Move(21, 0))) == 1
    assert calls_of(unbounded, lambda: moves.add(Move(2 * size - 11, 1))) == 6
    assert calls_of(unbounded, lambda: moves.add(Move(-1, 1))) == size + 2
    for view in (bound, every):
        view.verify()


def test_changes_far_from_each_other_are_folded_apart() -> None:
    moves = Database().table(Move, name="moves")
    moves.add_all([Move(2 * n, 1) for n in range(2_000)])
    view = moves.over(order="at").select(lambda m, w: w.scan(m.amount, bounded, 0)).materialize()
    changes = [Move(n, -2) for n in (101, 1_001, 3_001)]
    assert calls_of(bounded, lambda: moves.add_all(changes)) == 9
    view.verify()


def test_a_state_with_a_nan_ends_the_fold() -> None:
    """Each NaN is one value, also inside of a state."""

    def noted(state: tuple[int, float], amount: int) -> tuple[int, float]:
        return (min(5, state[0] + amount), float("nan"))

    moves = Database().table(Move, name="moves")
    moves.add_all([Move(2 * n, 1) for n in range(1_000)])
    view = (
        moves.over(order="at")
        .select(lambda m, w: (m.at, w.scan(m.amount, noted, (0, 0.0))))
        .materialize()
    )
    assert calls_of(noted, lambda: moves.add(Move(101, 1))) == 2
    assert calls_of(noted, lambda: moves.remove(Move(101, 1))) == 1
    view.verify()


def test_two_scans_of_a_window_end_each_for_itself() -> None:
    moves = Database().table(Move, name="moves")
    moves.add_all([Move(2 * n, 1) for n in range(100)])
    view = (
        moves.over(order="at")
        .select(lambda m, w: (m.at, w.scan(m.amount, bounded, 0), w.scan(m.amount, unbounded, 0)))
        .materialize()
    )
    assert calls_of(bounded, lambda: moves.add(Move(101, -1))) == 2
    assert calls_of(unbounded, lambda: moves.remove(Move(101, -1))) == 49
    view.verify()


# Averages.


class Price(NamedTuple):
    symbol: str
    at: datetime
    price: float | None


NOON = datetime(2026, 5, 1, 12)


def drawn_price(random: Random) -> Price:
    price = random.choice([None, 1.0, 4.0, random.random()])
    return Price(random.choice("ab"), NOON + timedelta(seconds=random.randrange(60)), price)


@pytest.mark.parametrize("seed", seeds(20, 3))
def test_averages_by_half_life_are_those_of_all_values_with_weights(seed: int) -> None:
    """The weight of a value halves in each half-life, in place of the recursion of the step."""
    random = Random(seed)
    db = Database()
    prices = db.table(Price, name="prices")
    half = timedelta(seconds=7)
    view = (
        prices.over(by="symbol", order=["at", "price"], nulls="first")
        .select(lambda p, w: (p, w.ema(p.price, half_life=half, at=p.at)))
        .materialize()
    )
    for _ in range(12):
        with db.transaction():
            for _ in range(random.choice([1, 2, 9])):
                prices.add(drawn_price(random))
            if random.random() < 0.7:
                prices.discard(random.choice(sorted(prices, key=repr)))
        shown = dict(view)
        for symbol in "ab":
            rows = [price for price in prices if price.symbol == symbol]
            rows.sort(key=lambda p: (p.at, p.price is not None, p.price or 0))
            for last, row in enumerate(rows):
                wanted = _weighted_mean(rows[: last + 1], half)
                assert shown[row] == (wanted if wanted is None else pytest.approx(wanted))
        view.verify()


def _weighted_mean(rows: list[Price], half: timedelta) -> float | None:
    known = [row for row in rows if row.price is not None]
    if not known:
        return None
    weights = [1.0]
    for before, after in pairwise(known):
        left = 0.5 ** ((after.at - before.at) / half)
        weights = [*(weight * left for weight in weights), 1 - left]
    return sum(w * (row.price or 0) for w, row in zip(weights, known, strict=True))


def test_averages_are_of_the_kind_of_their_numbers() -> None:
    db = Database()
    numbers = db.table(tuple[int, Decimal, Fraction], name="numbers")
    one_third, half = Fraction(1, 3), Decimal("0.5")
    view = (
        numbers.over(order=lambda n: n[0])
        .select(
            lambda n, w: (
                w.ema(n[0], alpha=0.5),
                w.ema(n[1], alpha=half),
                w.ema(n[2], alpha=one_third),
                w.ema(n[0], alpha=1),
            )
        )
        .materialize()
    )
    numbers.add_all([(n, Decimal(n), Fraction(n)) for n in (1, 2)])
    assert sorted(view) == [
        (1.0, Decimal(1), Fraction(1), 1.0),
        (1.5, Decimal("1.5"), Fraction(4, 3), 2.0),
    ]
    assert [type(each) for each in min(view)] == [float, Decimal, Fraction, float]


# Forms and meaning.


def moves_of(db: Database, *rows: tuple[int, int]) -> Any:
    moves = db.table(Move, name="moves")
    moves.add_all([Move(*row) for row in rows])
    return moves


def test_a_scan_in_comprehensions_and_conditions() -> None:
    db = Database()
    moves = moves_of(db, (1, 5), (2, -9), (3, 4))
    least = 0

    @db.query
    def written() -> list[tuple[int, int]]:
        return [
            (m.at, w.scan(m.amount, lambda level, x: max(least, level + x), 0))
            for m, w in moves.over(order="at")
        ]

    window = moves.over(order="at")
    above = window.where(lambda m, w: w.scan(m.amount, lambda s, m: s + m, 0) > 0)
    forms: list[Any] = [
        written,
        live(
            (m.at, w.scan(m.amount, lambda level, x: max(least, level + x), 0)) for m, w in window
        ),
        window.select(lambda m, w: (m.at, w.scan(m.amount, lambda s, x: max(least, s + x), 0))),
    ]
    for form in forms:
        view = form.materialize()
        assert sorted(view) == [(1, 5), (2, 0), (3, 4)]
        view.verify()
    assert [m.at for m in above.select(lambda m, w: m).materialize()] == [1]


def test_equal_scans_are_one_and_others_are_not() -> None:
    """Steps and first states of one meaning share an operator; 0 and 0.0 differ."""
    db = Database()
    moves = moves_of(db, (1, 5))
    window = moves.over(order="at")

    def view_of(start: Any) -> Any:
        return window.select(lambda m, w: w.scan(m.amount, operator.add, start)).materialize()

    def average(alpha: Any) -> Any:
        return window.select(lambda m, w: w.ema(m.amount, alpha=alpha)).materialize()

    views = [view_of(0), view_of(0.0), view_of(Decimal(0)), view_of(False)]
    assert [type(next(iter(view))) for view in views] == [int, float, Decimal, int]
    halves = [average(0.5), average(Fraction(1, 2))]
    assert [type(next(iter(view))) for view in halves] == [float, Fraction]
    before = len(db._engine.graph._nodes)
    again = view_of(0)
    assert len(db._engine.graph._nodes) == before and list(again) == [5]


def test_a_condition_on_a_rank_limits_the_folded_rows() -> None:
    db = Database()
    moves = moves_of(db, *((n, 1) for n in range(500)))
    first = (
        moves.over(order="at")
        .where(lambda m, w: w.row_number() <= 3)
        .select(lambda m, w: (m.at, w.scan(m.amount, unbounded, 0)))
        .materialize()
    )
    assert calls_of(unbounded, lambda: moves.add(Move(-1, 4))) == 3
    assert sorted(first) == [(-1, 4), (0, 5), (1, 6)]
    assert calls_of(unbounded, lambda: moves.remove(Move(0, 1))) == 2
    assert sorted(first) == [(-1, 4), (1, 5), (2, 6)]
    first.verify()


# Errors.


def test_a_step_that_raises_undoes_the_commit() -> None:
    db = Database()
    moves = moves_of(db, (1, 1), (4, 2))

    def divided(state: float, amount: int) -> float:
        return state / amount

    view = moves.over(order="at").select(lambda m, w: w.scan(m.amount, divided, 8.0)).materialize()
    with pytest.raises(ZeroDivisionError) as caught:
        moves.add_all([Move(2, 4), Move(3, 0)])
    notes = "\n".join(caught.value.__notes__)
    assert "in scan of" in notes and "test_scan.py" in notes
    assert "on row Move(at=3, amount=0)" in notes and "rolled back" in notes
    assert sorted(view) == [4.0, 8.0] and len(moves) == 2
    moves.add(Move(2, 4))
    assert sorted(view) == [1.0, 2.0, 8.0]
    view.verify()


def test_rows_of_a_partition_that_raises_are_left_out() -> None:
    db = Database()
    moves = moves_of(db, (1, 1), (2, 2))
    view = (
        moves.over(by=lambda m: m.at % 2, order="at")
        .select(lambda m, w: (m.at, w.scan(m.amount, lambda s, x: 8 // x + s, 0)))
        .materialize(on_error="drop")
    )
    moves.add(Move(3, 0))
    assert sorted(view) == [(2, 4)]
    moves.add(Move(5, 1))
    moves.remove(Move(3, 0))
    assert sorted(view) == [(1, 8), (2, 4), (5, 16)]


def test_a_state_that_may_change_is_refused() -> None:
    db = Database()
    moves = moves_of(db)
    window = moves.over(order="at")
    view = window.select(lambda m, w: len(w.scan(m.amount, lambda s, x: [*s, x], ()))).materialize()
    with pytest.raises(TypeError, match="the state of a scan is a list, which cannot be kept"):
        moves.add(Move(1, 1))
    assert not view and not moves


def test_times_that_go_back_are_refused() -> None:
    db = Database()
    moves = moves_of(db, (1, 1))
    window = moves.over(order=desc("at"))
    view = window.select(lambda m, w: w.ema(m.amount, half_life=1, at=m.at)).materialize()
    with pytest.raises(ValueError, match="the times of ema go back, from 2 to 1"):
        moves.add(Move(2, 1))
    assert list(view) == [1.0]


factor = 2


def test_a_captured_variable_of_a_step_that_changes_is_told() -> None:
    global factor
    factor = 2
    db = Database(strict=True)
    moves = moves_of(db)

    def scaled(state: int, amount: int) -> int:
        return state + factor * amount

    view = moves.over(order="at").select(lambda m, w: w.scan(m.amount, scaled, 0)).materialize()
    factor = 3
    with pytest.raises(RuntimeError, match="'factor'"):
        moves.add(Move(1, 1))
    factor = 2
    moves.add(Move(1, 1))
    assert list(view) == [2]


REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "a step that reads the row": (
        lambda m, w: w.scan(m.amount, lambda s, x: s + m.at, 0),
        r"pass what the step needs as the value",
    ),
    "no step": (lambda m, w: w.scan(m.amount, 0), "takes a callable as step, not 0"),
    "a step of one parameter": (lambda m, w: w.scan(m.amount, lambda s: s, 0), "the step of scan"),
    "a start that changes": (lambda m, w: w.scan(m.amount, max, []), "a start that has no hash"),
    "a start of the row": (
        lambda m, w: w.scan(m.amount, max, m.at),
        "a start that depends on the row",
    ),
    "no weight": (lambda m, w: w.ema(m.amount), "takes alpha=, or half_life= with at="),
    "two weights": (
        lambda m, w: w.ema(m.amount, alpha=0.1, half_life=1, at=m.at),
        "takes alpha=, or half_life= with at=",
    ),
    "no times": (lambda m, w: w.ema(m.amount, half_life=1), "takes alpha=, or half_life= with"),
    "an alpha of 2": (lambda m, w: w.ema(m.amount, alpha=2), "from more than 0 to 1, not 2"),
    "a text": (lambda m, w: w.ema(m.amount, alpha="a"), "from more than 0 to 1, not 'a'"),
    "a half-life of 0": (
        lambda m, w: w.ema(m.amount, half_life=0, at=m.at),
        "takes a half_life of more than 0, not 0",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, message = REFUSED[name]
    moves = moves_of(Database())
    with pytest.raises(PlanError, match=message) as caught:
        moves.over(order="at").select(call)
    assert "\n" in str(caught.value)


def test_a_scan_needs_an_order() -> None:
    moves = moves_of(Database())
    with pytest.raises(PlanError, match="needs an order"):
        moves.over().select(lambda m, w: w.scan(m.amount, max))


def test_nan_is_a_value_as_any_other() -> None:
    db = Database()
    numbers = db.table(tuple[int, float], name="numbers")
    view = (
        numbers.over(order=lambda n: n[0])
        .select(lambda n, w: (n[0], w.scan(n[1], operator.add, 0.0)))
        .materialize()
    )
    numbers.add_all([(1, 1.0), (2, NAN), (3, 2.0)])
    assert repr(sorted(view)) == "[(1, 1.0), (2, nan), (3, nan)]"
    numbers.remove((2, NAN))
    assert sorted(view) == [(1, 1.0), (3, 3.0)]
    view.verify()
