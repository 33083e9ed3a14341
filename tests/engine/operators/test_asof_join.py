"""As-of joins beside a look at all pairs, after every commit, and what a change of them costs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from reactive import Count, Database, PlanError, StratificationError, fixpoint
from reactive.engine.operators.asof_join import AsofJoin, Nearest
from tests.budget import SEED, sampled
from tests.thresholds import thresholds


@dataclass(frozen=True)
class Trade:
    symbol: str | None
    at: Any
    id: int


@dataclass(frozen=True)
class Quote:
    symbol: str | None
    at: Any
    price: int


START = datetime(2024, 1, 1, tzinfo=UTC)
TIMES: dict[str, tuple[Callable[[int], Any], Any]] = {
    "int": (lambda n: n, 2),
    "float": (lambda n: n / 4, 0.5),
    "decimal": (lambda n: Decimal(n), Decimal(2)),
    "instant": (lambda n: START + timedelta(seconds=n), timedelta(seconds=2)),
    "mixed": (lambda n: n if n % 2 else float(n), 2),
}


def _expected(
    trades: list[Trade],
    quotes: list[Quote],
    *,
    direction: str,
    tolerance: Any,
    allow_equal: bool,
    keeps: bool,
) -> list[tuple[Trade, Quote | None]]:
    """Return the pairs by a look at all quotes for each trade, as one would write it."""
    found: list[tuple[Trade, Quote | None]] = []
    for trade in trades:
        best: list[tuple[Any, int, int, Quote]] = []
        for quote in quotes:
            if quote.symbol != trade.symbol or None in (quote.at, trade.at):
                continue
            if quote.at == trade.at and not allow_equal:
                continue
            is_after = quote.at > trade.at
            if (is_after and direction == "backward") or (
                quote.at < trade.at and direction == "forward"
            ):
                continue
            distance = abs(quote.at - trade.at)
            if tolerance is None or distance <= tolerance:
                best.append((distance, is_after, quote.price, quote))
        if best or keeps:
            found.append((trade, min(best)[3] if best else None))
    return found


@sampled
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("kind", TIMES)
def test_histories_agree_with_all_pairs(kind: str, direction: Any) -> None:
    rnd, db = random.Random(f"{kind} {direction} {SEED}"), Database()
    make, tolerance = TIMES[kind]
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    views: list[tuple[Any, dict[str, Any]]] = []
    for within in (None, tolerance, tolerance - tolerance):
        for allow_equal in (True, False):
            given: Any = {"direction": direction, "tolerance": within, "allow_equal": allow_equal}
            inner = trades.asof_join(quotes, on="symbol", at="at", of=lambda q: q.at, **given)
            outer = trades.left_asof_join(
                quotes, on=lambda t, q: q.symbol == t.symbol, at=lambda t: t.at, of="at", **given
            )
            views.append((inner.materialize(), {**given, "keeps": False}))
            views.append((outer.materialize(), {**given, "keeps": True}))
    mine: list[Trade] = []
    theirs: list[Quote] = []
    for step in range(120):
        old = list(mine), list(theirs)
        try:
            with db.transaction():
                for _ in range(rnd.choice([1, 1, 1, 8])):
                    sides: list[Any] = [(Trade, mine, trades), (Quote, theirs, quotes)]
                    kind_of, rows, table = sides[rnd.randrange(2)]
                    if rows and rnd.random() < 0.45:
                        table.remove(rows.pop(rnd.randrange(len(rows))))
                        continue
                    at = None if rnd.random() < 0.05 else make(rnd.randrange(24))
                    rows.append(kind_of(rnd.choice("ab"), at, rnd.randrange(1_000)))
                    table.add(rows[-1])
                if rnd.random() < 0.15:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            mine[:], theirs[:] = old
        for view, given in views:
            wanted = _expected(mine, theirs, **given)
            assert sorted(view, key=repr) == sorted(wanted, key=repr), given
        if not step % 20:
            for view, _ in views:
                view.verify()
    trades.clear()
    quotes.clear()
    assert all(not view and not view.stats().rows for view, _ in views)


@pytest.mark.parametrize("allow_equal", [True, False])
@pytest.mark.parametrize("direction", ["backward", "forward", "nearest"])
@pytest.mark.parametrize("most", [0, 2_000], ids=["long orders", "lists"])
def test_batches_agree_with_all_pairs(most: int, direction: Any, allow_equal: bool) -> None:
    """Many rows of few times come and go at once, in any order, some together with the others."""
    rnd, db = random.Random(f"{direction} {allow_equal} {SEED}"), Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    given: Any = {"direction": direction, "allow_equal": allow_equal}
    view = trades.left_asof_join(quotes, on="symbol", at="at", of="at", **given).materialize()
    sides: list[tuple[Any, Any, list[Any]]] = [(Trade, trades, []), (Quote, quotes, [])]
    with thresholds({"reactive.engine.collections.values.MANY": most}):
        for _ in range(40):
            with db.transaction():
                for kind_of, table, held in rnd.sample(sides, rnd.choice([1, 1, 2])):
                    rnd.shuffle(held)
                    if rnd.random() < 0.4:
                        cut = rnd.randrange(len(held) + 1)
                        table.remove_all(held[cut:])
                        del held[cut:]
                    else:
                        count, times = rnd.randrange(30), rnd.choice([3, 40])
                        some = [
                            kind_of(rnd.choice("ab"), rnd.randrange(times), rnd.randrange(1_000))
                            for _ in range(count)
                        ]
                        table.add_all(some)
                        held += some
            wanted = _expected(sides[0][2], sides[1][2], tolerance=None, keeps=True, **given)
            assert sorted(view, key=repr) == sorted(wanted, key=repr)
        view.verify()


def test_tied_rows_are_ordered_by_value_and_those_of_no_weight_left_out() -> None:
    """A quote that is removed before it comes is no partner until it is there once."""
    join = AsofJoin(lambda row, other: (row, other), Nearest("backward"))
    assert join.step([((5, "a", 5), 1)], [((n, "a", 3), w) for n, w in [(8, 1), (4, -1)]]) == [
        ((5, 8), 1)
    ]
    join.commit()
    assert join.step([], [((4, "a", 3), 1)]) == []
    join.commit()
    assert join.step([], [((4, "a", 3), 1)]) == [((5, 8), -1), ((5, 4), 1)]
    join.undo()
    assert list(join.contents()) == [((5, 8), 1)]


def test_a_view_that_is_made_late_has_the_same_rows() -> None:
    db = Database()
    trades, quotes = db.table(int, name="trades"), db.table(int, name="quotes")
    query = trades.left_asof_join(quotes, at=lambda t: t, of=lambda q: q)
    first = query.materialize()
    trades.add_all([1, 5, 9])
    quotes.add_all([2, 7])
    late = query.select(lambda t, q: (t, q)).materialize()
    assert sorted(late) == sorted(first) == [(1, None), (5, 2), (9, 7)]


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("policy", ["drop", "null"])
def test_rows_without_a_key_are_left_out_and_rows_without_a_time_have_no_partner(
    policy: Any, optimize: bool
) -> None:
    db = Database(optimize=optimize)
    trades, quotes = db.table(tuple, name="trades"), db.table(tuple, name="quotes")
    given: Any = {
        "left_key": lambda t: 6 // t[0],
        "right_key": lambda q: 6 // q[0],
        "at": lambda t: t[1],
        "of": lambda q: q[1],
    }
    inner = trades.asof_join(quotes, **given).materialize(on_error=policy)
    outer = trades.left_asof_join(quotes, **given).materialize(on_error=policy)
    trades.add_all([(2, 5), (2,), (0, 5), (0,), (2, None)])
    quotes.add_all([(2, 4), (2,), (0, 4), (0,), (2, None)])
    timeless = [(2, None), (2,)] if policy == "null" else [(2, None)]
    assert list(inner) == [((2, 5), (2, 4))]
    others = [(trade, None) for trade in timeless]
    assert Counter(outer) == Counter([((2, 5), (2, 4)), *others])
    assert len(inner.errors) == len(outer.errors) == 6
    for view in (inner, outer):
        view.verify()
        view.errors.verify()


def test_several_bindings_on_both_sides() -> None:
    db = Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    names = db.table(tuple[str, str], name="names")
    named: Any = trades.join(names, on=lambda t, n: t.symbol == n[0])
    priced: Any = quotes.join(names, on=lambda q, n: q.symbol == n[0])
    view = named.asof_join(
        priced,
        on=lambda t, n, pair: n[1] == pair[1][1],
        at=lambda t, n: t.at,
        of=lambda pair: pair[0].at,
    ).select(lambda t, n, pair: (t.id, pair[0].price))
    found = view.materialize()
    names.add_all([("a", "Ann"), ("b", "Bob")])
    trades.add_all([Trade("a", 5, 1), Trade("b", 5, 2)])
    quotes.add_all([Quote("a", 4, 10), Quote("a", 6, 20), Quote("b", 5, 30)])
    assert sorted(found) == [(1, 10), (2, 30)]
    found.verify()


def test_the_rest_of_the_query_goes_on_above() -> None:
    db = Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    pairs = trades.asof_join(quotes, on="symbol", at="at", of="at")
    dear = pairs.where(lambda t, q: q.price > 10).group_by(lambda t, q: t.symbol).aggregate(Count())
    view = dear.materialize()
    trades.add_all([Trade("a", n, n) for n in range(10)])
    quotes.add_all([Quote("a", 3, 5), Quote("a", 6, 15)])
    assert dict(view) == {"a": 4}
    quotes.remove(Quote("a", 6, 15))
    assert dict(view) == {}
    view.verify()


def test_one_change_touches_the_rows_between_its_neighbours() -> None:
    """A quote among 2,000 trades and quotes touches the trades up to the next quote."""
    db = Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    view = trades.asof_join(quotes, on="symbol", at="at", of="at").materialize()
    trades.add_all(Trade("a", n, n) for n in range(2_000))
    quotes.add_all(Quote("a", n, n) for n in range(0, 2_000, 4))
    before = view.stats().touched
    quotes.add(Quote("a", 1_001, 7))
    trades.add(Trade("a", 500.5, -1))
    assert view.stats().touched - before < 30
    view.verify()


def test_a_tolerance_bounds_the_rows_that_are_touched() -> None:
    """A quote with no other near it touches the trades within the tolerance."""
    db = Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    view = trades.asof_join(quotes, on="symbol", at="at", of="at", tolerance=3).materialize()
    trades.add_all(Trade("a", n, n) for n in range(2_000))
    before = view.stats().touched
    quotes.add(Quote("a", 1_000, 7))
    assert len(view) == 4
    assert view.stats().touched - before < 30


def test_times_that_do_not_compare_are_rolled_back() -> None:
    db = Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    view = trades.asof_join(quotes, on="symbol", at="at", of="at").materialize()
    trades.add_all([Trade("a", 1, 1), Trade("a", 5, 2)])
    quotes.add(Quote("a", 2, 1))
    with pytest.raises(TypeError):
        quotes.add_all([Quote("a", 3, 2), Quote("a", "late", 3)])
    assert list(view) == [(Trade("a", 5, 2), Quote("a", 2, 1))]
    quotes.add(Quote("a", 4, 4))
    assert list(view) == [(Trade("a", 5, 2), Quote("a", 4, 4))]
    view.verify()


def test_texts_are_times_without_a_tolerance() -> None:
    db = Database()
    trades, quotes = db.table(str, name="trades"), db.table(str, name="quotes")
    view = trades.asof_join(quotes, at=lambda t: t, of=lambda q: q).materialize()
    trades.add_all(["b", "d"])
    quotes.add_all(["a", "c"])
    assert sorted(view) == [("b", "a"), ("d", "c")]


def test_a_partner_may_be_none() -> None:
    """None is an ordinary row, other than no partner."""
    db = Database()
    trades, quotes = db.table(int, name="trades"), db.table(object, name="quotes")
    query = trades.asof_join(quotes, at=lambda t: t, of=lambda q: 0 if q is None else q)
    view = query.materialize()
    trades.add_all([0, 5])
    quotes.add_all([None, 3])
    assert set(view) == {(0, None), (5, 3)}
    view.verify()


def test_rows_that_are_not_stored_may_be_removed_before_they_came() -> None:
    db = Database()
    trades = db.table(int, name="trades", stored=False)
    quotes = db.table(int, name="quotes")
    counted = trades.asof_join(quotes, at=lambda t: t, of=lambda q: q).aggregate(Count())
    view = counted.materialize()
    quotes.add(1)
    trades.remove(5)
    assert view.value == -1
    quotes.remove(1)
    assert view.value == 0
    trades.add_all([5, 6])
    quotes.add(2)
    assert view.value == 1


@pytest.mark.parametrize("policy", ["drop", "null"])
def test_a_row_whose_time_raises_follows_the_policy(policy: Any) -> None:
    db = Database()
    trades, quotes = db.table(int, name="trades"), db.table(int, name="quotes")
    joined = trades.left_asof_join(quotes, at=lambda t: 12 // t, of=lambda q: q)
    view = joined.materialize(on_error=policy)
    quotes.add_all([1, 4])
    trades.add_all([0, 3])
    wanted = {(3, 4)} if policy == "drop" else {(3, 4), (0, None)}
    assert set(view) == wanted
    view.verify()


def test_a_recursion_does_not_pass() -> None:
    """A partner is replaced by a nearer one, so that a new row may delete another."""
    db = Database()
    starts, steps = db.table(int, name="starts"), db.table(int, name="steps")
    for is_left in (True, False):

        def step(found: Any) -> Any:
            one, other = (found, steps) if is_left else (steps, found)
            pairs = one.asof_join(other, at=lambda n: n, of=lambda s: s)
            return starts.union(pairs.select(lambda n, s: s))

        with pytest.raises(StratificationError):
            fixpoint(step)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"on": lambda t, q: t.symbol > q.symbol}, "t.symbol > q.symbol is no equation"),
        ({"on": "name"}, "name"),
        ({"direction": "back"}, "asof_join has no direction 'back'"),
        ({"tolerance": -1}, "the tolerance of asof_join is a distance of times, not -1"),
        ({"tolerance": "1s"}, "the tolerance of asof_join is a distance of times, not '1s'"),
        ({"at": "when"}, "when"),
        ({"of": "when"}, "when"),
    ],
)
def test_arguments_that_have_no_meaning(given: dict[str, Any], message: str) -> None:
    db = Database()
    trades, quotes = db.table(Trade, name="trades"), db.table(Quote, name="quotes")
    with pytest.raises(PlanError, match=message):
        trades.asof_join(quotes, **{"on": "symbol", "at": "at", "of": "at", **given})
