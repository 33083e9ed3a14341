"""Streams and look-ups beside lists of all events, with late, early and refused ones."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from optimizer.plans.fingerprint import fingerprint
from reactive import (
    Count,
    Database,
    Max,
    Median,
    Min,
    PlanError,
    Sum,
    TableError,
    hopping,
    session,
    tumbling,
)
from tests.budget import SEED

START = datetime(2024, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Sale:
    item: str
    at: Any
    pieces: int


@dataclass(frozen=True)
class Price:
    item: str
    euros: int


class Model:
    """A stream as one would write it: a list, and the greatest time before a commit."""

    def __init__(self, lateness: Any) -> None:
        self.events: list[Sale] = []
        self.late: list[Sale] = []
        self.newest: Any = None
        self.lateness = lateness

    def commit(self, sales: list[Sale]) -> list[Sale]:
        """Return the sales that are in time."""
        mark = self.watermark
        late = [s for s in sales if mark is not None and s.at is not None and s.at < mark]
        self.late += late
        in_time = [sale for sale in sales if sale not in late]
        self.events += in_time
        times = [sale.at for sale in in_time if sale.at is not None]
        self.newest = max([*times, *([] if self.newest is None else [self.newest])], default=None)
        return in_time

    @property
    def watermark(self) -> Any:
        return None if self.newest is None else self.newest - self.lateness


@pytest.mark.parametrize(
    ("start", "step", "lateness"),
    [(0, 1, 4), (0.0, 0.5, 0.0), (START, timedelta(seconds=1), timedelta(seconds=3))],
    ids=["int", "float without lateness", "instant"],
)
def test_histories_of_events_agree_with_lists(start: Any, step: Any, lateness: Any) -> None:
    rnd, db = random.Random(f"{start} {SEED}"), Database()
    prices = db.table(Price, name="prices", key="item")
    sales = db.stream(Sale, at="at", lateness=lateness, name="sales")
    per_five = sales.window(tumbling(step * 5), at=lambda s: s.at)
    sums = per_five.group_by(lambda s, w: (s.item, w)).aggregate(Count(), Sum("pieces"))
    prices.add(Price("a", 1))
    views: dict[str, Any] = {
        "sums": sums.materialize(),
        "late": sales.late.materialize(),
        "all": sales.materialize(),
        "priced": sales.lookup(prices, on="item").materialize(),
        "padded": sales.where(lambda s: s.pieces > 1)
        .left_lookup(prices, left_key="item", right_key=lambda p: p.item)
        .materialize(),
    }
    model, now, known = Model(lateness), 0, {"a": Price("a", 1)}
    priced = Counter[Any]()
    padded = Counter[Any]()
    for _ in range(150):
        now += rnd.choice([0, 1, 1, 3])
        batch, before = [], dict(known)
        for _event in range(rnd.choice([0, 1, 1, 5])):
            at = None if rnd.random() < 0.05 else start + step * (now - rnd.randrange(12))
            batch.append(Sale(rnd.choice("abc"), at, rnd.randrange(4)))
        changed = [Price(rnd.choice("abc"), rnd.randrange(99)) for _ in range(rnd.choice([0, 1]))]
        try:
            with db.transaction():
                sales.add_all(batch[:2])
                for price in changed:
                    prices.upsert(price)
                    known[price.item] = price
                for sale in batch[2:]:
                    sales.add(sale)
                if rnd.random() < 0.1:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            known = before
        else:
            for sale in model.commit(batch):
                if sale.item in known:
                    priced[sale, known[sale.item]] += 1
                if sale.pieces > 1:
                    padded[sale, known.get(sale.item)] += 1
        _check(views, model, priced, padded, step * 5, start - start)
        assert sales.watermark.first() == model.watermark


def _check(
    views: dict[str, Any], model: Model, priced: Any, padded: Any, size: Any, zero: Any
) -> None:
    """Compare the views with the model."""
    assert Counter(views["all"]) == Counter(model.events)
    assert Counter(views["late"]) == Counter(model.late)
    assert Counter(views["priced"]) == priced
    assert Counter(views["padded"]) == padded
    timed = [sale for sale in model.events if sale.at is not None]
    for (item, window), count, pieces in views["sums"]:
        own = [s for s in timed if s.item == item and window.start <= s.at < window.end]
        assert (count, pieces) == (len(own), sum(s.pieces for s in own))
        assert window.end - window.start == size
    assert sum(count for _, count, _ in views["sums"]) == len(timed)


def test_lateness_is_elapsed_time() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    sales = Database().stream(datetime, at=lambda t: t, lateness=timedelta(hours=1), name="sales")
    late = sales.late.materialize()
    sales.add(datetime(2024, 3, 31, 3, 30, tzinfo=berlin))
    sales.add(datetime(2024, 3, 31, 1, 30, tzinfo=berlin))
    sales.add(datetime(2024, 3, 31, 1, 29, tzinfo=berlin))
    assert [time.minute for time in late] == [29]
    assert sales.watermark.first() == datetime(2024, 3, 31, 0, 30, tzinfo=UTC)


def test_events_of_one_commit_are_judged_alike() -> None:
    db = Database()
    sales = db.stream(int, at=lambda n: n, lateness=2, name="sales")
    rows, late = sales.materialize(), sales.late.materialize()
    sales.add_all([10, 1, 5])
    assert sorted(rows) == [1, 5, 10]
    sales.add_all([8, 7, 20, 3])
    assert (sorted(rows), sorted(late)) == ([1, 5, 8, 10, 20], [3, 7])
    assert (sales.watermark.first(), repr(sales)) == (18, "Stream('sales', watermark 18)")


def test_late_events_are_refused_if_that_is_asked() -> None:
    db = Database()
    sales = db.stream(int, at=lambda n: n, lateness=2, late="raise", name="sales")
    rows, late = sales.materialize(), sales.late.materialize()
    sales.add(10)
    with pytest.raises(TableError, match="its time, 7, is before the watermark, 8"):
        sales.add(7)
    with pytest.raises(TableError, match="before the watermark"):
        sales.add_all([9, 3, 30])
    with pytest.raises(TableError), db.transaction():
        sales.add(11)
        sales.add(1)
    assert (list(rows), list(late), sales.watermark.first()) == ([10], [], 8)


def test_a_commit_with_late_events_is_one_commit() -> None:
    db = Database()
    sales = db.stream(int, at=lambda n: n, lateness=0, name="sales")
    rows, late = sales.materialize(), sales.late.materialize()
    sales.add(10)
    version = db.version
    sales.add_all([3, 12, 4])
    assert (db.version, list(rows), list(late)) == (version + 1, [10, 12], [3, 4])
    with pytest.raises(ZeroDivisionError), db.transaction():
        sales.add_all([1, 20])
        raise ZeroDivisionError
    assert (list(rows), list(late), sales.watermark.first()) == ([10, 12], [3, 4], 12)
    sales.add(2, 3)
    assert late.count(2) == 3


@pytest.mark.parametrize("change", ["remove", "remove_all", "discard", "replace_all", "update"])
def test_events_are_not_removed(change: str) -> None:
    sales = Database().stream(int, at=lambda n: n, lateness=0, name="sales")
    sales.add(1)
    given: dict[str, Any] = {"remove_all": ([1],), "replace_all": ([],), "update": (1, 2)}
    with pytest.raises(TableError):
        getattr(sales, change)(*given.get(change, (1,)))
    assert sales.watermark.first() == 1


@pytest.mark.parametrize("time", [None, math.nan])
def test_events_without_a_time_are_never_late_and_move_nothing(time: Any) -> None:
    sales = Database().stream(tuple, at=lambda s: s[0], lateness=0, name="sales")
    rows = sales.materialize()
    sales.add((time,))
    assert sales.watermark.first() is None
    sales.add((5,))
    sales.add((time,))
    assert (len(rows), sales.watermark.first()) == (3, 5)


def test_a_time_that_raises_refuses_the_event() -> None:
    sales = Database().stream(tuple, at=lambda s: 10 // s[0], lateness=0, name="sales")
    rows = sales.materialize()
    with pytest.raises(ZeroDivisionError):
        sales.add((0,))
    sales.add((1,))
    with pytest.raises(ZeroDivisionError):
        sales.add_all([(2,), (0,)])
    assert list(rows) == [(1,)]


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")
def test_the_watermark_is_a_relation() -> None:
    db = Database()
    sales = db.stream(Sale, at="at", lateness=2, name="sales")
    counts = sales.window(tumbling(10), at="at").group_by(lambda s, w: w).aggregate(Count())
    final = counts.join(sales.watermark, on=lambda w, n, mark: w.end <= mark)
    closed = final.select(lambda w, n, mark: (w.start, n)).materialize()
    for at in (1, 4, 12, 11, 9):
        sales.add(Sale("a", at, 1))
    assert list(closed) == [(0, 2)]
    sales.add(Sale("a", 40, 1))
    assert sorted(closed) == [(0, 2), (10, 2)]


def test_lookups_chain_and_follow_views_of_events() -> None:
    db = Database()
    prices = db.table(Price, name="prices", key="item")
    towns = db.table(tuple[int, str], name="towns")
    sales = db.stream(Sale, at="at", lateness=2, name="sales")
    few = sales.where(lambda s: s.pieces < 3).materialize("few")
    chained = (
        few.lookup(prices, on="item")
        .left_lookup(towns, on=lambda s, p, t: p.euros == t[0])
        .select(lambda s, p, t: (s.at, p.euros, t and t[1]))
        .materialize()
    )
    pairs = sales.lookup(prices).select(lambda s, p: s.at).materialize()
    prices.add(Price("a", 3))
    sales.add_all([Sale("a", 1, 1), Sale("a", 2, 5), Sale("b", 2, 1)])
    towns.add((3, "Ulm"))
    sales.add(Sale("a", 3, 1))
    prices.upsert(Price("a", 4))
    towns.clear()
    assert list(chained) == [(1, 3, None), (3, 3, "Ulm")]
    assert sorted(pairs) == [1, 2, 2, 3]


@pytest.mark.parametrize("policy", ["drop", "null"])
def test_keys_that_raise_follow_the_policy(policy: Any) -> None:
    db = Database()
    prices = db.table(Price, name="prices")
    sales = db.stream(Sale, at="at", lateness=2, name="sales")
    query = sales.lookup(prices, left_key=lambda s: 6 // s.pieces, right_key=lambda p: p.euros)
    view = query.select(lambda s, p: (s.at, p.item)).materialize(on_error=policy)
    errors = view.errors
    prices.add(Price("a", 3))
    sales.add_all([Sale("a", 1, 2), Sale("a", 2, 0)])
    assert list(view) == [(1, "a")]
    assert len(errors) == 1


def test_late_views_of_what_was_dropped_are_refused() -> None:
    """Pairs of earlier events, and groups that are closed, are in no operator."""
    db = Database()
    prices = db.table(Price, name="prices", key="item")
    sales = db.stream(Sale, at="at", lateness=0, name="sales")
    few = sales.where(lambda s: s.pieces < 9)
    priced = few.left_lookup(prices, on="item")
    counts = few.window(tumbling(10), at="at").group_by(lambda s, w: w).aggregate(Count())
    cheap = priced.where(lambda s, p: p is None).materialize()
    many = counts.where(lambda w, n: n > 1).materialize()
    sales.add_all([Sale("a", 1, 1), Sale("a", 2, 1)])
    sales.add(Sale("a", 30, 1))
    for late in (priced.where(lambda s, p: p is not None), counts.where(lambda w, n: n < 9)):
        with pytest.raises(TableError, match="flowed already"):
            late.materialize()
    assert (len(cheap), len(many)) == (3, 1)


DROPPED: dict[str, Callable[[Any, Any], Any]] = {
    "look-ups": lambda sales, prices: sales.lookup(prices, on="item"),
    "selected look-ups": lambda sales, prices: sales.left_lookup(prices, on="item").select(
        lambda s, p: (s, p is None)
    ),
    "groups": lambda sales, prices: (
        sales.window(tumbling(10), at="at").group_by(lambda s, w: w).aggregate(Count())
    ),
    "sessions": lambda sales, prices: (
        sales.window(session(3, by="item"), at="at").group_by(lambda s, w: w).aggregate(Count())
    ),
    "distinct": lambda sales, prices: sales.select(lambda s: s.at).distinct(),
    "pairs": lambda sales, prices: sales.join(sales, on=lambda s, t: abs(s.at - t.at) < 5),
}
LATE: dict[str, Callable[[Any], Any]] = {
    "itself": lambda query: query,
    "where": lambda query: query.where(lambda *row: row is not None),
    "distinct": lambda query: query.distinct(),
    "count": lambda query: query.aggregate(Count()),
    "order": lambda query: query.order_by(lambda *row: repr(row)),
}


@pytest.mark.filterwarnings("ignore::reactive.UnboundedStateWarning")
@pytest.mark.parametrize("held", ["a view", "the events", "nothing"])
@pytest.mark.parametrize("name", DROPPED)
def test_late_queries_of_what_was_dropped_have_all_rows_or_are_refused(
    name: str, held: str
) -> None:
    """Operators have dropped most rows; a view that holds all of them serves any query."""
    db = Database()
    prices = db.table(Price, name="prices", key="item")
    sales = db.stream(Sale, at="at", lateness=2, name="sales")
    query = DROPPED[name](sales, prices)
    views = [query.materialize()] if held == "a view" else []
    views += [sales.materialize()] if held == "the events" else []
    twin = Database()  # which has all queries from the start
    twin_prices = twin.table(Price, name="prices", key="item")
    twin_sales = twin.stream(Sale, at="at", lateness=2, name="sales")
    early = {
        key: of(DROPPED[name](twin_sales, twin_prices)).materialize() for key, of in LATE.items()
    }
    for table in (prices, twin_prices):
        table.add(Price("a", 1))
    for at in range(0, 90, 9):
        for stream in (sales, twin_sales):
            stream.add(Sale("ab"[at % 2], at, 1))
    found = {}
    for key, of in LATE.items():
        for base in (query, *(view.relation for view in views if held == "a view")):
            try:
                found[key] = sorted(map(repr, of(base).materialize()))
            except TableError as error:
                assert "flowed already" in str(error)
                assert held != "a view", key
            else:
                assert found[key] == sorted(map(repr, early[key])), key
    assert bool(found) or held != "a view"


def test_late_queries_of_what_has_closed_have_all_of_it_or_are_refused() -> None:
    """Rows that the first step emits are held until another one emits; undoing that keeps them."""
    db = Database()
    sales = db.stream(Sale, at="at", lateness=0, name="sales")
    counts = sales.window(tumbling(10), at="at").group_by(lambda s, w: w).aggregate(Count())
    view = counts.materialize()

    def closed() -> list[tuple[int, int]]:
        late = view.when_closed(lambda w, n: w.end)
        kept.append(late.materialize())
        return sorted((w.start, n) for w, n in kept[-1])

    kept: list[Any] = []
    sales.add_all([Sale("a", 1, 1), Sale("a", 2, 1)])
    assert closed() == []
    sales.add(Sale("a", 25, 1))
    assert closed() == [(0, 2)]
    with pytest.raises(KeyError), db.transaction():
        sales.add(Sale("a", 45, 1))
        raise KeyError
    assert closed() == [(0, 2)]
    sales.add(Sale("a", 35, 1))
    assert [sorted((w.start, n) for w, n in each) for each in kept] == [[(0, 2), (20, 1)]] * 3
    assert closed() == [(0, 2), (20, 1)]  # a view that is there holds them
    kept.clear()
    assert closed() == [(0, 2), (20, 1)]  # of all rows of the view, by a new operator


def test_late_views_of_streams_are_not_verified() -> None:
    """They read a part that holds the rows of a view, in place of the stream."""
    db = Database()
    sales = db.stream(Sale, at="at", lateness=0, name="sales")
    view = sales.materialize()
    sales.add(Sale("a", 1, 1))
    late = sales.where(lambda s: s.pieces > 0).materialize()
    for each in (view, late):
        with pytest.raises(TableError, match="is not stored"):
            each.verify()


def test_a_nan_matches_nothing() -> None:
    db = Database()
    prices, sales = (
        db.table(tuple, name="prices"),
        db.stream(tuple, at=lambda s: s[1], lateness=0, name="sales"),
    )
    view = sales.lookup(prices, on=lambda s, p: s[0] == p[0]).materialize()
    prices.add_all([(math.nan,), (1,)])
    sales.add_all([(math.nan, 1), (1, 1)])
    assert list(view) == [((1, 1), (1,))]


def test_lookups_of_rows_that_may_go_are_refused() -> None:
    db = Database()
    prices = db.table(Price, name="prices", key="item")
    sales = db.stream(Sale, at="at", lateness=2, name="sales")
    flowing = db.table(Sale, name="flowing", stored=False)
    for left in (prices, flowing, sales.distinct(), sales.join(prices, on="item")):
        with pytest.raises(PlanError, match="is for events"):
            left.lookup(prices, left_key=lambda *_: 1, right_key=lambda p: p.euros)
    limit = db.parameter(3)
    with pytest.raises(PlanError, match="changes without one"):
        sales.lookup(prices, left_key=lambda s: s.pieces + limit(), right_key=lambda p: p.euros)
    with pytest.raises(PlanError, match="no equation"):
        sales.lookup(prices, on=lambda s, p: s.pieces < p.euros)
    with pytest.raises(TableError, match="not stored"):
        sales.lookup(prices, on="item").materialize().verify()


@pytest.mark.parametrize(
    "given",
    [
        {"lateness": -1},
        {"lateness": "soon"},
        {"lateness": None},
        {"lateness": 0, "late": "drop"},
        {"lateness": 0, "at": "missing"},
        {"lateness": 0, "at": 7},
        {"lateness": 0, "at": "item"},
        {"lateness": timedelta(1), "at": "pieces"},
        {"lateness": timedelta(1), "at": lambda s: s.pieces * 2 if s.pieces else s.pieces},
    ],
)
def test_streams_that_mean_nothing_are_refused(given: dict[str, Any]) -> None:
    db = Database()
    with pytest.raises(PlanError):
        db.stream(Sale, **{"at": "at", "name": "sales", **given})
    assert db.tables() == []


@pytest.mark.parametrize(
    ("kind", "fits", "misfits"),
    [
        (datetime | None, [timedelta(0)], [5, 0.5]),
        (date, [timedelta(days=1)], [1]),
        (int, [5, 0.5, Decimal(1)], [timedelta(1)]),
        (float, [5, 0.5, Decimal(1)], [timedelta(1)]),
        (Decimal, [5, Decimal(1)], [0.5, timedelta(1)]),
        (timedelta, [timedelta(1)], [5]),
        (int | datetime, [5, timedelta(1)], []),
        (str, [], [5, timedelta(1)]),
        (Any, [5, timedelta(1)], []),
    ],
)
def test_a_lateness_is_a_distance_of_the_declared_times(
    kind: Any, fits: list[Any], misfits: list[Any]
) -> None:
    db = Database()
    for lateness in misfits:
        with pytest.raises(PlanError, match="is no distance"):
            db.stream(kind, at=lambda time: time, lateness=lateness, name="times")
    assert db.tables() == []
    for number, lateness in enumerate(fits):
        db.stream(kind, at=lambda time: time, lateness=lateness, name=f"times {number}")


def test_queries_of_streams_are_the_same_whatever_has_come() -> None:
    sales = Database().stream(Sale, at="at", lateness=2, name="sales")
    windows = sales.window(tumbling(10), at="at"), sales.window(session(10), at="at")
    queries = [sales.watermark, *(w.group_by(lambda s, w: w).aggregate(Count()) for w in windows)]
    before = fingerprint(*(query.plan for query in queries))
    sales.add(Sale("a", 7, 1))
    assert fingerprint(*(query.plan for query in queries)) == before
    other = Database().stream(Sale, at="at", lateness=3, name="sales")
    assert fingerprint(other.watermark.plan) != fingerprint(sales.watermark.plan)


def test_streams_are_replaced_and_dropped() -> None:
    db = Database()
    db.table(int, name="taken_late")
    with pytest.raises(PlanError, match="taken_late"):
        db.stream(int, at=lambda n: n, lateness=0, name="taken")
    assert [table.name for table in db.tables()] == ["taken_late"]
    first = db.stream(int, at=lambda n: n, lateness=0, name="sales")
    first.add(7)
    second = db.stream(int, at=lambda n: n, lateness=0, name="sales", replace=True)
    second.add(3)
    assert (second.watermark.first(), first.watermark.closed) == (3, True)
    with pytest.raises(TableError):
        first.add(1)
    db.drop(second, views=True)


def test_a_transaction_whose_events_became_late_is_refused() -> None:
    db = Database()
    sales = db.stream(int, at=lambda n: n, lateness=0, name="sales")
    rows = sales.materialize()
    clock = sales._clock
    with pytest.raises(TableError, match="became late before it was committed"), db.transaction():
        sales.add(5)
        clock.watermark = 9  # as a commit of another task does
    assert not list(rows)


def test_an_event_costs_its_matches_and_is_not_kept() -> None:
    db = Database()
    prices = db.table(Price, name="prices", key="item")
    sales = db.stream(Sale, at="at", lateness=2, name="sales")
    view = sales.lookup(prices, on="item").select(lambda s, p: p.euros).materialize()
    prices.add_all(Price(f"{n}", n) for n in range(1000))
    touched = []
    for n in range(2000):
        before = view.stats().touched
        sales.add(Sale(f"{n % 1000}", n, 1))
        touched.append(view.stats().touched - before)
    assert max(touched) <= 8
    held = [each for each in view.stats().operators if "lookup" in each.name]
    assert [each.rows for each in held] == [1000]


def _queries_that_close(clicks: Any) -> dict[str, Any]:
    """Return groups of windows, which close below the watermark if the clicks are of a stream."""
    per_ten = clicks.where(lambda c: c[2] >= 0).window(tumbling(10), at=lambda c: c[1])
    overlapping = clicks.window(hopping(10, every=5), at=lambda c: c[1])
    visits = clicks.window(session(5, by=lambda c: c[0]), at=lambda c: c[1])
    return {
        "counts": per_ten.group_by(lambda c, w: (c[0], w)).aggregate(n=Count(), s=Sum(_pieces)),
        "extremes": per_ten.group_by(lambda c, w: w.start).aggregate(Max(_pieces)),
        "ends": overlapping.group_by(lambda c, w: w.end).aggregate(Count()),
        "medians": overlapping.group_by(lambda c, w: w).aggregate(Median(_pieces)),
        "visits": visits.group_by(lambda c, w: (c[0], w)).aggregate(Count(), Min(_pieces)),
    }


def _views_that_close(db: Database) -> tuple[Any, dict[str, Any]]:
    """Return a stream, and views of groups that close below its watermark."""
    clicks = db.stream(tuple, at=lambda c: c[1], lateness=20, name="clicks")
    names = db.table(tuple[str, str], name="names")
    names.add_all([("a", "Ann"), ("b", "Bob")])
    per_name = (
        clicks.left_lookup(names, on=lambda c, n: c[0] == n[0])
        .window(tumbling(10), at=lambda c, n: c[1])
        .group_by(lambda c, n, w: (n and n[1], w))
        .aggregate(Count())
    )
    queries = {**_queries_that_close(clicks), "named": per_name}
    return clicks, {name: query.materialize() for name, query in queries.items()}


def _pieces(click: Any, window: Any) -> int:
    return int(click[2])


def test_groups_of_closed_windows_are_dropped_and_their_rows_stay() -> None:
    db = Database()
    clicks, views = _views_that_close(db)
    refused = clicks.where(lambda c: 1 // (c[2] + 1)).materialize()
    table = Database().table(tuple, name="clicks")
    expected = {name: each.materialize() for name, each in _queries_that_close(table).items()}
    rnd, now = random.Random(SEED), 0
    in_time = clicks.materialize()
    for number in range(1_500):
        now += rnd.choice([0, 1, 1, 2, 9])
        batch = [
            (rnd.choice("abc"), now - rnd.randrange(30), rnd.randrange(9))
            for _ in range(rnd.choice([1, 1, 4]))
        ]
        if rnd.random() < 0.1:
            with pytest.raises(ZeroDivisionError):
                clicks.add_all([*batch, ("a", now + 100, -1)])
            continue
        before = Counter(in_time)
        clicks.add_all(batch)
        table.add_all((Counter(in_time) - before).elements())
        if not number % 50:
            for name, view in expected.items():
                assert Counter(views[name]) == Counter(view), name
    assert len(refused) < len(in_time)
    assert sum(n for _, n in views["named"]) == len(in_time)


def test_the_state_of_closing_groups_is_constant() -> None:
    clicks, views = _views_that_close(Database())

    def kept() -> int:
        return sum(
            each.rows
            for view in views.values()
            for each in view.stats().operators
            if not each.name.startswith("rows of")
        )

    rnd, sizes = random.Random(SEED), []
    for number in range(10_000):
        clicks.add((rnd.choice("abcdef"), number - rnd.randrange(15), rnd.randrange(9)))
        if number % 1_000 == 999:
            sizes.append(kept())
    assert max(sizes) < 1.6 * min(sizes) < 1_000
    assert all(len(view) >= 900 for view in views.values())


def test_only_windows_of_the_time_of_the_stream_close() -> None:
    db = Database()
    sales = db.stream(Sale, at="at", lateness=2, name="sales")

    def closes(query: Any) -> bool:
        return "runs as\n  apply aggregate" in str(query.explain())

    by_time = sales.window(tumbling(10), at=lambda s: s.at)
    assert closes(by_time.group_by(lambda s, w: w).aggregate(Count()))
    assert closes(by_time.group_by(lambda s, w: (s.item, w.end)).aggregate(Count()))
    assert not closes(by_time.group_by(lambda s, w: s.item).aggregate(Count()))
    assert not closes(by_time.group_by(lambda s, w: w.start % 7).aggregate(Count()))
    by_pieces = sales.window(tumbling(10), at=lambda s: s.pieces)
    assert not closes(by_pieces.group_by(lambda s, w: w).aggregate(Count()))
    stored = db.table(Sale, name="stored").window(tumbling(10), at=lambda s: s.at)
    assert not closes(stored.group_by(lambda s, w: w).aggregate(Count()))
