"""A view is a query: accepted like any relation, with its methods, and computing nothing twice."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from operator import contains
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import (
    ClosedError,
    Count,
    Database,
    Multiset,
    OrderedRelation,
    PlanError,
    Relation,
    Sum,
    View,
    fixpoint,
    iterate,
)
from reactive.engine.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: str
    total: int


ORDERS = [Order(1, "ann", 20), Order(2, "bob", 5), Order(3, "ann", 7), Order(4, "eve", 9)]


def shop() -> tuple[Database, Any, Any]:
    db = Database()
    orders = db.table(Order, name="orders")
    orders.add_all(ORDERS)
    return db, orders, orders.where(lambda o: o.total > 6).materialize("large")


VERBS: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda v, t: v.where(lambda o: o.id > 1),
    "select": lambda v, t: v.select(lambda o: o.id),
    "select_many": lambda v, t: v.select_many(lambda o: [o.id, o.total]),
    "unnest": lambda v, t: v.unnest(lambda o: [o.id, o.total]),
    "distinct": lambda v, t: v.distinct(),
    "order_by": lambda v, t: v.order_by(lambda o: o.total).limit(2),
    "join": lambda v, t: v.join(t, on=lambda a, b: a.customer == b.customer),
    "join_of_view": lambda v, t: t.join(v, on=lambda a, b: a.customer == b.customer),
    "left_join": lambda v, t: t.left_join(v, on=lambda a, b: a.id == b.id),
    "right_join": lambda v, t: v.right_join(t, on=lambda a, b: a.id == b.id),
    "full_join": lambda v, t: t.full_join(v, on=lambda a, b: a.id == b.id),
    "semi_join": lambda v, t: t.semi_join(v, on=lambda a, b: a.customer == b.customer),
    "anti_join": lambda v, t: t.anti_join(v, on=lambda a, b: a.customer == b.customer),
    "product": lambda v, t: v.join(v),
    "or": lambda v, t: v | t,
    "of_table_or": lambda v, t: t | v,
    "and": lambda v, t: t & v,
    "minus": lambda v, t: t - v,
    "plus": lambda v, t: v + v,
    "difference_all": lambda v, t: (v + t).difference_all(v),
    "intersection_all": lambda v, t: t.intersection_all(v),
    "group_by": lambda v, t: v.group_by(lambda o: o.customer).aggregate(Count()),
    "aggregate": lambda v, t: v.aggregate(Sum(lambda o: o.total)),
    "fixpoint": lambda v, t: fixpoint(lambda r: v.union(r.where(lambda o: o.id > 3))),
    "iterate": lambda v, t: iterate(lambda r: r + v, v, times=2),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_view_has_the_verbs_of_its_relation(verb: str) -> None:
    _, orders, large = shop()
    made = VERBS[verb](large, orders)
    twin = VERBS[verb](large.relation, orders)
    assert type(made) is type(twin) and isinstance(made, Relation)
    view = made.materialize()
    orders.add(Order(5, "bob", 30))
    orders.remove(ORDERS[0])
    view.verify()
    assert Counter(view) == Counter(twin.materialize())


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_made_of_a_view_holds_it(verb: str) -> None:
    db, orders, large = shop()
    made = VERBS[verb](large, orders)
    further = made.distinct() | made.distinct()
    held = weakref.ref(large)
    del large, made
    gc.collect()
    assert held() is not None and [v.name for v in db.views()] == ["large"]
    del further
    gc.collect()
    assert held() is None and db.views() == []


def test_what_is_made_of_views_holds_each_once() -> None:
    _, _, large = shop()
    both: Any = large
    for _ in range(40):
        both = both + both
    assert both._views == (large,)


def test_groups_of_a_view_hold_it() -> None:
    db, _, large = shop()
    groups = large.group_by(lambda o: o.customer)
    del large
    gc.collect()
    assert groups.aggregate(Count()).materialize().snapshot()
    assert [view.name for view in db.views()] == ["large"]


def test_ordered_and_grouped_views_have_what_their_relations_have_besides() -> None:
    _, orders, _ = shop()
    ordered = orders.order_by(lambda o: o.total).materialize()
    assert isinstance(ordered.limit(2), OrderedRelation) and ordered.limit(1)._views == (ordered,)
    assert [o.id for o in ordered.limit(2).materialize()] == [2, 3]
    groups = orders.group_by(lambda o: o.customer).aggregate(Count()).materialize()
    assert groups.where(lambda name, n: n > 1).materialize()["ann"] == 2


def test_rows_of_a_view_are_not_computed_twice() -> None:
    calls: list[Order] = []

    def slow(order: Order) -> int:
        calls.append(order)
        return order.total % 3

    db = Database()
    orders = db.table(Order, name="orders")
    by_rest = orders.group_by(slow).aggregate(Count()).materialize()
    orders.add(ORDERS[0])
    alone = len(calls)
    frequent = by_rest.where(lambda rest, n: n > 1).materialize()
    of_two = by_rest.where(lambda rest, n: rest == 2).materialize()
    twice = by_rest.select(lambda rest, n: 2 * n).materialize()
    calls.clear()
    orders.add(ORDERS[1])
    assert len(calls) == alone and list(twice) == [4] and frequent == {2: 2} and of_two == {2: 2}
    assert "view" in str(frequent.explain())


QUERIES: dict[str, Callable[[Any, Any], Any]] = {
    "where": lambda t, slow: t.where(slow),
    "select": lambda t, slow: t.select(lambda o: (slow(o), o.customer)),
    "join": lambda t, slow: t.join(t, left_key=slow, right_key=lambda o: o.id),
    "distinct": lambda t, slow: t.select(slow).distinct(),
    "aggregate": lambda t, slow: t.aggregate(Sum(slow)),
    "groups": lambda t, slow: t.group_by(slow).aggregate(Count(), Sum(slow)),
    "named groups": lambda t, slow: t.group_by(slow).aggregate(n=Count(), total=Sum(slow)),
    "order_by": lambda t, slow: t.order_by(slow).limit(3),
}
LATER: dict[str, Callable[[Any], Any]] = {
    "where": lambda v: v.where(lambda *row: row),
    "where_of_key": lambda v: v.where(lambda *row: row[0] != 1),
    "select": lambda v: v.select(lambda *row: row),
    "distinct": lambda v: v.distinct(),
    "aggregate": lambda v: v.aggregate(Count()),
    "order_by": lambda v: v.order_by(lambda *row: str(row)),
    "join": lambda v: v.join(v, on=lambda *row: row[0] == row[-1]),
    "union": lambda v: v | v,
}


@pytest.mark.parametrize("later", LATER)
@pytest.mark.parametrize("query", QUERIES)
def test_no_callable_of_a_view_is_called_again_for_what_is_made_of_it(
    query: str, later: str
) -> None:
    class Slow:
        calls = 0

        def __call__(self, order: Order) -> int:
            Slow.calls += 1
            return order.total % 3

    _, orders, _ = shop()
    view = QUERIES[query](orders, Slow()).materialize()
    further = [Order(n, "bob", n) for n in range(20, 24)]
    orders.add(further[0])
    Slow.calls = 0
    orders.add(further[1])
    alone = Slow.calls
    made = LATER[later](view).materialize()
    Slow.calls = 0
    orders.add(further[2])
    assert Slow.calls == alone > 0
    made.verify()


@pytest.mark.parametrize("verb", VERBS)
def test_a_closed_view_makes_no_relation(verb: str) -> None:
    _, orders, large = shop()
    large.close()
    with pytest.raises(PlanError, match="view 'large' is closed"):
        VERBS[verb](large, orders)


def test_a_relation_outlives_the_end_of_the_view_it_was_made_of() -> None:
    _, _, large = shop()
    customers = large.select(lambda o: o.customer)
    large.close()
    assert sorted(customers.materialize()) == ["ann", "ann", "eve"]


def test_a_view_of_a_view_is_another_view_of_the_same_query() -> None:
    _, orders, large = shop()
    again = large.materialize("again")
    assert type(again) is type(large) and again is not large and again.name == "again"
    assert again.relation is large.relation
    large.close()
    orders.add(Order(9, "bob", 50))
    assert len(again) == 4


def test_views_of_two_databases_do_not_meet() -> None:
    _, _, large = shop()
    _, _, other = shop()
    with pytest.raises(PlanError, match="two databases"):
        large.union(other)


def test_a_callable_may_read_a_view() -> None:
    _, orders, large = shop()
    found = orders.where(lambda o: o in large).materialize()
    assert Counter(found) == Counter(large)
    order = Order(9, "bob", 50)
    orders.add(order)
    assert order in large and Counter(found) == Counter(large)
    orders.remove(order)
    assert order not in found and Counter(found) == Counter(large)
    found.verify()


def test_a_callable_that_cannot_be_read_may_not_read_a_view() -> None:
    _, orders, large = shop()

    def is_large(order: Order) -> bool:
        for each in large:  # noqa: SIM110  # a loop is not read
            if each == order:
                return True
        return False

    with pytest.raises(PlanError, match="reads relations, and cannot be read: a 'for' statement"):
        orders.where(is_large)
    with pytest.raises(PlanError, match=r"which is a View\n.*join it instead"):
        orders.where(partial(contains, large))


def test_over_a_table_that_is_not_stored_a_view_can_be_queried_late() -> None:
    db = Database()
    clicks = db.table(int, name="clicks", stored=False)
    even = clicks.where(lambda n: n % 2 == 0).materialize()
    clicks.add_all(range(5))
    tenfold = even.select(lambda n: n * 10).materialize()
    clicks.add(6)
    assert sorted(tenfold) == [0, 20, 40, 60]


# Equality.

WORDS = ["to", "be", "or", "not", "to", "be"]


def words_of(rows: list[str]) -> Any:
    words = Database().table(str, name="words")
    words.add_all(rows)
    return words


@given(st.lists(st.sampled_from(WORDS)), st.lists(st.sampled_from(WORDS)))
def test_a_view_equals_what_has_its_rows(rows: list[str], others: list[str]) -> None:
    words = words_of(rows)
    view, ordered = words.materialize(), words.order_by(len).materialize()
    same = Counter(rows) == Counter(others)
    for other in (others, tuple(others), Multiset(others), Multiset(Counter(others))):
        assert (view == other) is same and (other == view) is same
        assert (view != other) is not same
    assert (ordered == others) is (list(ordered) == others)
    assert (ordered == tuple(others)) is (list(ordered) == others)
    assert (ordered == Multiset(Counter(others))) is same


def test_a_grouped_view_equals_a_dict_too() -> None:
    words = words_of(WORDS)
    one = words.group_by(len).aggregate(Count()).materialize()
    two = words.group_by(len).aggregate(Count(), Sum(len)).materialize()
    assert one == {2: 5, 3: 1} and one == [(3, 1), (2, 5)]
    assert two == {2: (5, 10), 3: (1, 3)} and two != {2: (5, 10)} and one != {2: 5, 3: 2}
    assert words.materialize() != {"to": 2}


def test_another_view_is_only_itself() -> None:
    words = words_of(WORDS)
    view, twin = words.materialize(), words.materialize()
    assert view == view and view != twin and list(view) == list(twin)
    assert view != words and view != view.relation
    assert len({view, twin, view}) == 2 and hash(view) == hash(view)


def test_what_is_no_collection_of_rows_is_unequal() -> None:
    view = words_of(["to"]).materialize()
    for other in ("to", {"to"}, frozenset({"to"}), 1, None, iter(["to"])):
        assert view != other
    assert view != [["to"]] and view != [{}] and view == ["to"]


def test_rows_with_nan_are_compared_as_everywhere() -> None:
    numbers = Database().table(float)
    numbers.add_all([float("nan"), 1.0])
    assert numbers.materialize() == [1.0, float("nan")]
    assert numbers.order_by(lambda x: x).materialize() == [1.0, float("nan")]


def test_a_closed_view_is_compared_with_nothing_but_itself() -> None:
    view = words_of(["to"]).materialize("words")
    view.close()
    assert view == view
    with pytest.raises(ClosedError):
        _ = view == ["to"]


# The first rows.


def test_first_and_head_give_the_first_rows() -> None:
    words = words_of(["three", "to", "a", "to"])
    ordered = words.order_by(len)
    for rows in (ordered, ordered.materialize()):
        assert rows.first() == "a" and rows.head(2) == ["a", "to"] and rows.head(0) == []
        assert rows.head(99) == ["a", "to", "to", "three"]
    limited = ordered.limit(2)
    assert limited.head(5) == ["a", "to"] and limited.first() == "a"


@pytest.mark.parametrize("of", ["table", "relation", "view", "groups", "value"])
def test_first_and_head_are_those_of_the_iteration(of: str) -> None:
    words = words_of(WORDS)
    rows: Any = {
        "table": lambda: words,
        "relation": lambda: words.where(str.islower),
        "view": lambda: words.materialize(),
        "groups": lambda: words.group_by(len).aggregate(Count()).materialize(),
        "value": lambda: words.aggregate(Count()).materialize(),
    }[of]()
    every = list(rows if of != "relation" else rows.materialize())
    assert rows.head(3) == every[:3] and rows.head(100) == every
    assert rows.first() == every[0]


def test_of_no_rows_the_first_is_none() -> None:
    words = words_of([])
    for rows in (words, words.distinct(), words.materialize(), words.order_by(len).materialize()):
        assert rows.first() is None and rows.first("none") == "none" and rows.head(3) == []


@pytest.mark.parametrize("n", [-1, 1.5, "1", True, None])
def test_head_takes_a_number_of_rows(n: Any) -> None:
    words = words_of(WORDS)
    for rows in (words, words.distinct(), words.materialize(), words.order_by(len).materialize()):
        with pytest.raises(PlanError, match="head takes"):
            rows.head(n)


def test_the_first_rows_of_a_relation_leave_no_view_behind() -> None:
    words = words_of(WORDS)
    assert words.distinct().head(2) and words.distinct().first()
    assert words._engine.live_views() == []


def test_the_first_rows_of_a_table_are_those_of_the_transaction() -> None:
    words = words_of([])
    with Transaction(words._engine):
        words.add("to")
        assert words.first() == "to" and words.head(2) == ["to"]


def test_collection_methods_are_kept() -> None:
    view: View[str] = words_of(WORDS).materialize()
    assert view.count("to") == 2 and len(view) == 6 and "or" in view
    assert dict(view.zset().items()) == Counter(WORDS)


def test_a_multiset_is_made_of_values_or_of_their_counts() -> None:
    pairs = [("a", 2), ("a", 2)]
    assert Multiset(pairs) == Multiset({("a", 2): 2}) != Multiset({"a": 2})
    assert Multiset([]) == Multiset({}) == Multiset(iter(())) and len(Multiset("aa")) == 2
    table = Database().table(float)
    table.add_all([float("nan"), 1.0])
    assert table.materialize() == Multiset([1.0, float("nan")])
