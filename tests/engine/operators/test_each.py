"""`group_by(key).each(query)` against the query of each group alone.

They are compared after each commit and each refused commit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer import plan
from optimizer.plans.properties import bindings
from reactive import (
    Aggregate,
    Collect,
    Count,
    Database,
    GroupedView,
    Max,
    Min,
    PlanError,
    StratificationError,
    Sum,
    fixpoint,
    iterate,
)
from reactive.engine.collections.zset import canonical
from tests import naive
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw
from tests.random_queries.histories import Held
from tests.random_queries.plans import Switches
from tests.replica import Replica

SWITCHES = Switches(sizes=(1, 2, 2, 3), recursion=False, orders=False)
TABLES = (
    *((Held("P"), Held("P")), (Held("P"), Held("P")), (Held("T"), Held("W"))),
    *((Held("W"), Held("T")), (Held("W"), Held("W"))),
)
KEYS: tuple[Callable[[Any], Any], ...] = (
    *(lambda r: r[0], lambda r: r[1], lambda r: (r[0], r[1])),
    *(lambda r: math.nan if r[1] == 2 else r[1], lambda r: None if r[0] == 0 else True),
)
MORE: tuple[Callable[[Any], Any], ...] = (
    lambda r: r[2],
    *(lambda r: r[3], lambda r: r[4], lambda r: (r[4], r[0], r[3]), lambda r: (r[-1], r[2])),
)
"""Keys of rows with at least three places, or with five."""
KEYS_OF = {"P": KEYS, "T": (*KEYS, *MORE[:1]), "W": (*KEYS, *MORE)}
Query = Callable[[Sequence[Any]], Any]


def expected(query: Query, key: Any, rows: Iterable[Any], others: Iterable[Any]) -> Counter[Any]:
    """The query evaluated for each group, in tables that have its rows only."""
    groups: dict[Any, Counter[Any]] = {}
    for row in rows:
        groups.setdefault(canonical(key(row)), Counter())[row] += 1
    db = Database()
    made = query([db.table(tuple, name="group"), db.table(tuple, name="others")]).plan
    found: Counter[Any] = Counter()
    for name, members in groups.items():
        held = {"group": members, "others": Counter(others)}
        rows_of = partial(_rows_of, held)
        for row, times in naive.evaluate(made, rows_of).items():
            several = bindings(made) > 1
            seen = _shown(made, row)
            found[(name, *seen) if several else (name, seen)] += times
    return found


def _shown(made: plan.Node, row: Any) -> Any:
    """Return a row without its sort key, if the query has an order."""
    count = made.shown if isinstance(made, plan.OrderBy) else None
    if count is None:
        return row
    return row[0] if count == 1 else row[:count]


def _rows_of(held: dict[str, Counter[Any]], table: plan.Table) -> Iterable[tuple[Any, int]]:
    return held[table.name].items()


@pytest.mark.long
@examples(200)
@given(seed=SEEDS, optimize=st.booleans())
def test_a_view_has_what_the_query_gives_for_each_group_alone(seed: int, optimize: bool) -> None:
    tables = TABLES[seed // 7 % len(TABLES)]
    keys = KEYS_OF[tables[0].kind]
    drawn, key = draw(seed, SWITCHES, tables=tables), keys[seed % len(keys)]
    db = Database(optimize=optimize)
    bag, other = drawn.open(db)
    refused: Any = db.table(int, name="refused")

    def query(relations: Sequence[Any]) -> Any:
        (made,) = drawn.relations(relations)
        return made

    relation = bag.group_by(key).each(lambda group: query([group, other]))
    view = relation.materialize("each")
    refusing = refused.select(lambda r: 1 // 0).materialize()
    replica = Replica(view)
    for number, calls in enumerate(drawn.script()):
        commit(db, (bag, other), calls)
        assert Counter(view) == expected(query, key, bag, other), drawn
        view.verify()
        replica.check()
        if number == 1:
            before = Counter(view)
            with pytest.raises(ZeroDivisionError), db.transaction():
                bag.clear()
                refused.add(1)
            assert Counter(view) == before
    late = relation.materialize()
    assert Counter(late) == Counter(view)
    with db.transaction():
        bag.clear()
        other.clear()
    assert not list(view) and not list(refusing)


@dataclass(frozen=True, slots=True)
class Order:
    town: str
    total: int


def shown(query: Any, rows: Sequence[Any], *, optimize: bool = True) -> list[Any]:
    """Return the result of a query for each group of some orders."""
    db = Database(optimize=optimize)
    orders = db.table(Order, name="orders")
    view = orders.group_by("town").each(query).materialize()
    orders.add_all(rows)
    view.verify()
    return sorted(view, key=repr)


A1, A2, B1 = Order("a", 1), Order("a", 2), Order("b", 1)
CASES: dict[str, tuple[Any, list[Any] | None]] = {
    "where": (lambda g: g.where(lambda o: o.total > 1), [("a", A2)]),
    "select": (lambda g: g.select(lambda o: o.total), [("a", 1), ("a", 2), ("b", 1)]),
    "unnest": (
        lambda g: g.unnest(lambda o: range(o.total)).where(lambda o, n: n > 0),
        [("a", A2, 1)],
    ),
    "select_many": (lambda g: g.select_many(lambda o: [o.total] * 2).distinct(), None),
    "aggregate": (lambda g: g.aggregate(Count()), [("a", 2), ("b", 1)]),
    "aggregates of no rows": (
        lambda g: g.where(lambda o: o.total > 1).aggregate(Count(), Sum("total"), Max("total")),
        [("a", 1, 2, 2), ("b", 0, 0, None)],
    ),
    "one's own aggregate": (
        lambda g: g.where(lambda o: False).aggregate(
            Aggregate(0, lambda s, v: s + 1, lambda s, v: s - 1, result=str)
        ),
        [("a", "0"), ("b", "0")],
    ),
    "groups": (
        lambda g: g.group_by("total").aggregate(Count()).where(lambda total, n: total == 1),
        [("a", 1, 1), ("b", 1, 1)],
    ),
    "rows themselves": (lambda g: g.select(lambda o: o.total).aggregate(Min(lambda n: n)), None),
    "limit": (lambda g: g.order_by("total").limit(1, offset=1), [("a", A2)]),
    "top": (lambda g: g.group_by(lambda o: 0).top(1, by="total"), [("a", A2), ("b", B1)]),
    "reduce": (
        lambda g: g.group_by(lambda o: o.total % 2).reduce(lambda odd, rows: [len(rows), odd]),
        [("a", 0, 0), ("a", 0, 1), ("a", 1, 1), ("a", 1, 1), ("b", 1, 1), ("b", 1, 1)],
    ),
    "with itself": (
        lambda g: g.join(g, on=lambda x, y: x.total < y.total).select(lambda x, y: y.total),
        [("a", 2)],
    ),
    "largest, by none above": (
        lambda g: g.anti_join(g, on=lambda x, y: x.total < y.total),
        [("a", A2), ("b", B1)],
    ),
    "part of the whole": (
        lambda g: g.join(g.aggregate(Sum("total"))).select(lambda o, whole: (o.total, whole)),
        [("a", (1, 3)), ("a", (2, 3)), ("b", (1, 1))],
    ),
    "sets": (
        lambda g: g.select(lambda o: o.total) - g.where(lambda o: o.total > 1).select(lambda o: 1),
        [("a", 2), ("b", 1)],
    ),
    "each": (
        lambda g: g.group_by("total").each(lambda h: h.aggregate(Count())),
        [("a", 1, 1), ("a", 2, 1), ("b", 1, 1)],
    ),
    "each of several": (
        lambda g: g.group_by("total").each(lambda h: h.where(lambda o: o.total > 1)),
        [("a", 2, A2)],
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("optimize", [True, False])
def test_what_can_be_asked_of_each_group(name: str, optimize: bool) -> None:
    query, rows = CASES[name]
    found = shown(query, [A1, A2, B1], optimize=optimize)
    assert rows is None or found == sorted(rows, key=repr)


def test_other_relations_are_the_same_for_all_groups() -> None:
    db = Database()
    orders, limits = db.table(Order, name="orders"), db.table(int, name="limits")
    groups = orders.group_by("town")
    queries: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
        "joined": (
            lambda g: g.join(limits, on=lambda o, n: o.total > n),
            [("a", A2, 1)],
        ),
        "joined the other way": (
            lambda g: limits.join(g, on=lambda n, o: o.total > n),
            [("a", 1, A2)],
        ),
        "left": (
            lambda g: limits.left_join(g, on=lambda n, o: o.total > n),
            [("a", 1, A2), ("b", 1, None)],
        ),
        "right": (
            lambda g: g.right_join(limits, on=lambda o, n: o.total > n),
            [("a", A2, 1), ("b", None, 1)],
        ),
        "beside": (lambda g: limits, [("a", 1), ("b", 1)]),
        "without": (
            lambda g: limits - g.where(lambda o: o.total > 1).select(lambda o: 1),
            [("b", 1)],
        ),
    }
    views = {name: groups.each(query).materialize() for name, (query, _) in queries.items()}
    with db.transaction():
        orders.add_all([A1, A2, B1])
        limits.add(1)
    for name, view in views.items():
        assert sorted(view, key=repr) == sorted(queries[name][1], key=repr), name
        view.verify()
    orders.clear()
    assert not any(list(view) for view in views.values())


def test_views_of_aggregates_read_by_key_and_conditions_reach_the_table() -> None:
    orders = Database().table(Order, name="orders")
    counts = orders.group_by("town").each(lambda g: g.aggregate(Count(), Sum("total")))
    view: Any = counts.materialize()
    orders.add_all([A1, A2, B1])
    assert isinstance(view, GroupedView) and view["a"] == (2, 3)
    large = orders.group_by("town").each(lambda g: g.where(lambda o: o.total > 1))
    one = large.where(lambda town, o: town == "a")
    text = (
        "optimized\n"
        "  bind order.town, order\n"
        "    where o.total > 1 and o.town == 'a'\n"
        "      table orders\n"
        "runs as\n"
        "  pipeline where o.total > 1 and o.town == 'a' | bind order.town, order\n"
        "    table orders\n"
        "rules: push_where_below_extend, fuse_wheres"
    )
    assert text in str(one.explain())
    assert list(one.materialize()) == [("a", A2)]


def test_rows_of_records_keep_their_names() -> None:
    orders = Database().table(Order, name="orders")
    sums = orders.group_by("town").each(lambda g: g.aggregate(n=Count(), total=Sum("total")))
    view = sums.where(lambda town, row: row.total > 1).materialize()
    orders.add_all([A1, A2, B1])
    rows: list[Any] = list(view)
    ((town, row),) = rows
    assert (town, row.n, row.total) == ("a", 2, 3)


@pytest.mark.parametrize("optimize", [True, False])
def test_what_raises_takes_the_commit_back(optimize: bool) -> None:
    db = Database(optimize=optimize)
    numbers = db.table(int, name="numbers")
    shares = numbers.group_by(lambda n: 12 // n).each(
        lambda g: g.where(lambda n: n < 9).select(lambda n: 6 // (n - 3))
    )
    view = shares.materialize("shares")
    numbers.add_all([1, 2, 8])
    before = sorted(view)
    for bad in (3, 0):
        with pytest.raises(ZeroDivisionError) as raised:
            numbers.add_all([4, bad, 5])
        assert "of view 'shares'" in raised.value.__notes__[0]
        assert f"on row {bad}" in raised.value.__notes__[0] or "(4, 3)" in raised.value.__notes__[0]
        assert sorted(view) == before and len(numbers) == 3


def test_a_key_that_raises_does_so_whatever_the_query_leaves_out() -> None:
    for optimize in (True, False):
        numbers = Database(optimize=optimize).table(int, name="numbers")
        view = numbers.group_by(lambda n: 1 // n).each(lambda g: g.where(lambda n: n > 0))
        held = view.materialize()
        with pytest.raises(ZeroDivisionError):
            numbers.add(0)
        assert not list(held)


def test_what_is_refused_when_it_is_made() -> None:
    db = Database()
    orders: Any = db.table(Order, name="orders")
    groups = orders.group_by("town")
    with pytest.raises(PlanError, match="each takes a callable, relation -> relation, not 3"):
        groups.each(3)
    for query in (lambda: orders, lambda a, b: orders):
        with pytest.raises(PlanError, match="each calls its callable with one relation"):
            groups.each(query)
    with pytest.raises(PlanError, match=r"returns a relation, not None \(does it have a return"):
        groups.each(lambda g: None)
    with pytest.raises(PlanError, match="returns a relation, not Groups"):
        groups.each(lambda g: g.group_by("total"))
    with pytest.raises(PlanError, match="each of relations of two databases"):
        groups.each(lambda g: Database().table(int))
    with pytest.raises(PlanError, match="no binding has a field 'totl'; did you mean 'total'"):
        groups.each(lambda g: g.order_by("totl").limit(1))
    with pytest.raises(PlanError, match=r"cannot do order_by order.total for every .*\n  order_by"):
        groups.each(lambda g: g.order_by("total"))
    with pytest.raises(PlanError, match="cannot do iterate r, 2 times for every group"):
        groups.each(lambda g: iterate(lambda r: r, g, times=2))
    kept: list[Any] = []

    def keeps(group: Any) -> Any:
        kept.append(group)
        return group

    groups.each(keeps)
    with pytest.raises(PlanError, match=r"'group' has no rows .*\n  .* each\(\) returns"):
        kept[0].materialize()
    with pytest.raises(StratificationError, match="own aggregate\n  r -> aggregate -> r"):
        fixpoint(lambda r: orders.union(r.group_by(lambda o: 0).each(_counted).select(_second)))


def _counted(group: Any) -> Any:
    return group.aggregate(Count())


def _second(key: Any, row: Any) -> Any:
    return row


def test_tables_that_are_not_stored() -> None:
    numbers = Database().table(int, stored=False)
    sums = numbers.group_by(lambda n: n % 2).each(lambda g: g.aggregate(Sum(lambda n: n)))
    view = sums.materialize()
    numbers.add_all([1, 2, 3])
    late = sums.select(lambda key, n: n).materialize()
    numbers.add(5)
    assert sorted(view) == [(0, 2), (1, 9)] and sorted(late) == [2, 9]


@pytest.mark.parametrize("rows", [100, 10_000])
def test_a_change_touches_its_group_alone(rows: int) -> None:
    numbers = Database().table(int)
    view = (
        numbers.group_by(lambda n: n % 10)
        .each(lambda g: g.where(lambda n: n % 3 != 1).order_by(lambda n: n).limit(3))
        .materialize()
    )
    numbers.add_all(range(rows))
    before = view.stats().touched
    numbers.add(rows)
    numbers.remove(0)
    assert view.stats().touched - before <= 30


@pytest.mark.parametrize("optimize", [True, False])
def test_parts_of_a_group_whose_key_is_a_computed_nan_meet(optimize: bool) -> None:
    numbers = Database(optimize=optimize).table(int)
    groups = numbers.group_by(lambda n: float("nan") if n > 1 else n)
    view = groups.each(lambda g: g.join(g, on=lambda a, b: a < b)).materialize()
    numbers.add_all([0, 1, 2, 3])
    ((_, *pair),) = view
    assert pair == [2, 3]
    view.verify()


def test_values_are_collected_with_one_nan() -> None:
    floats = Database().table(float)
    view = (
        floats.group_by(lambda x: x)
        .each(lambda g: g.join(g.aggregate(Collect(lambda x: x))))
        .materialize()
    )
    floats.add_all([float("nan"), float("nan"), 1.0])
    assert [len(values) for _, _, values in view] == [2, 2, 1]
    view.verify()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        (lambda x: x[1], lambda y: (1, 2)),
        (lambda x: (1, 2), lambda y: y[1]),
        (lambda x: x[1], lambda y: y[1]),
        (lambda x: (x[1], 1), lambda y: (y[1], 1)),
        (lambda x: (x[1], 1), lambda y: (y[1], 1, 1)),
        (lambda x: (x[1], x[0]), lambda y: (y[1], y[0])),
        (lambda x: (x[0],), lambda y: y[0]),
    ],
)
def test_keys_that_are_tuples_meet_as_they_do_outside_of_groups(
    left: Callable[[Any], Any], right: Callable[[Any], Any], optimize: bool
) -> None:
    nan = math.nan
    rows = [(1, (1, 2)), (2, (1, 2)), (1, (1, nan)), (nan, 1), ((1,), 1), (1, 1), ((nan,), 1)]
    table: Any = Database(optimize=optimize).table(tuple)
    view = (
        table.group_by(lambda x: 0)
        .each(lambda group: group.join(group, left_key=left, right_key=right))
        .materialize()
    )
    whole = table.join(table, left_key=left, right_key=right).materialize()
    table.add_all(rows)
    assert Counter(row[1:] for row in view) == Counter(whole)
    view.verify()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("kind", ["asof_join", "left_asof_join"])
def test_as_of_joins_are_of_each_group_alone(kind: str, optimize: bool) -> None:
    rng, db = Random(3), Database(optimize=optimize)
    trades, quotes = db.table(tuple, name="trades"), db.table(tuple, name="quotes")

    def of_group(group: Any) -> Any:
        return getattr(group, kind)(group, at=lambda t: t[1], of=lambda q: q[2])

    def of_others(group: Any) -> Any:
        joined = getattr(group.extend(lambda t: t[1] % 3), kind)
        return joined(
            quotes,
            on=lambda t, n, q: n == q[0],
            at=lambda t, n: t[1],
            of=lambda q: q[1],
            direction="forward",
        )

    groups = trades.group_by(lambda t: t[0])
    own, other = groups.each(of_group).materialize(), groups.each(of_others).materialize()
    for _ in range(60):
        table = rng.choice([trades, quotes])
        row = (rng.choice([1, 2, None]), rng.randrange(9), rng.randrange(9))
        table.discard(row) if rng.random() < 0.4 else table.add(row)
        expected: list[Any] = []
        for t in trades:
            before = [q for q in trades if q[0] == t[0] and q[2] <= t[1]]
            last = max((q[2] for q in before), default=None)
            found = min((q for q in before if q[2] == last), default=None)
            expected += [(t[0], t, found)] * (found is not None or kind == "left_asof_join")
        assert Counter(own) == Counter(expected)
        expected = []
        for t in trades:
            after = [q for q in quotes if q[0] == t[1] % 3 and q[1] >= t[1]]
            found = min(after, key=lambda q: q[1:], default=None)
            expected += [(t[0], t, t[1] % 3, found)] * (
                found is not None or kind == "left_asof_join"
            )
        assert Counter(other) == Counter(expected)
    own.verify()
    other.verify()
