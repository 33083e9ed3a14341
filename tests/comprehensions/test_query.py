"""`db.query`, `live` and `check`: queries as functions and generators."""

from __future__ import annotations

import linecache
import math
import warnings
import weakref
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from reactive import (
    Count,
    Database,
    DuplicateKeyError,
    GroupedQuery,
    GroupedView,
    Multiset,
    OrderedQuery,
    OrderedView,
    PlanError,
    Query,
    StaleCaptureWarning,
    StratificationError,
    VerificationError,
    check,
    live,
)


@dataclass(frozen=True)
class Customer:
    id: int
    name: str


@dataclass(frozen=True)
class Order:
    id: int
    cid: int
    total: float
    paid: bool = False


@pytest.fixture
def db() -> Database:
    return Database()


@pytest.fixture
def customers(db: Database) -> Any:
    table = db.table(Customer, name="customers")
    table.add_all([Customer(1, "Ann"), Customer(2, "Bob"), Customer(3, "Cem")])
    return table


@pytest.fixture
def orders(db: Database) -> Any:
    table = db.table(Order, name="orders")
    table.add_all([Order(1, 1, 5.0), Order(2, 1, 2.0, True), Order(3, 2, 4.0, True)])
    return table


def test_a_decorated_function_is_a_relation(db: Database, customers: Any, orders: Any) -> None:
    @db.query
    def debtors() -> list[str]:
        """Return the names of customers who owe something."""
        return [c.name for c in customers if any(o.cid == c.id and not o.paid for o in orders)]

    assert isinstance(debtors, Query)
    view = debtors.materialize("debtors")
    assert list(view) == ["Ann"] == debtors()
    orders.add(Order(4, 3, 1.0))
    assert sorted(view) == ["Ann", "Cem"]
    orders.remove(Order(1, 1, 5.0))
    assert list(view) == ["Cem"]
    check(view)
    view.verify()


def test_a_query_composes_with_methods(db: Database, customers: Any, orders: Any) -> None:
    owed = db.query(lambda: {o.cid for o in orders if not o.paid})
    names = customers.semi_join(owed, on=lambda c, cid: c.id == cid).select(lambda c: c.name)
    assert list(names.materialize()) == ["Ann"]
    again = db.query(lambda: [cid + 1 for cid in owed()])
    assert list(again.materialize()) == [2]
    check(again.materialize())


def test_a_view_and_a_relation_are_sources(db: Database, customers: Any, orders: Any) -> None:
    paid = orders.where(lambda o: o.paid)
    view = paid.materialize("paid")
    both = db.query(lambda: [(o.id, p.id) for o in paid for p in view if o.cid == p.cid])
    found = both.materialize()
    assert sorted(found) == [(2, 2), (3, 3)]
    orders.add(Order(9, 2, 0.0, True))
    assert sorted(found) == [(2, 2), (3, 3), (3, 9), (9, 3), (9, 9)]


def test_bindings_of_a_join_are_a_pair(db: Database, customers: Any, orders: Any) -> None:
    pairs = customers.join(orders, on=lambda c, o: c.id == o.cid)
    query = db.query(lambda: [(c.name, o.id) for c, o in pairs if o.total > 2])
    whole = db.query(lambda: [p[1].id for p in pairs])
    assert sorted(query.materialize()) == [("Ann", 1), ("Bob", 3)]
    assert sorted(whole.materialize()) == [1, 2, 3]


def test_a_dictionary_is_a_mapping(db: Database, customers: Any, orders: Any) -> None:
    query = db.query(lambda: {c.name: len([o for o in orders if o.cid == c.id]) for c in customers})
    assert isinstance(query, GroupedQuery)
    view = query.materialize()
    assert isinstance(view, GroupedView)
    assert view["Ann"] == 2
    assert view == {"Ann": 2, "Bob": 1, "Cem": 0} == query()
    customers.remove(Customer(2, "Bob"))
    assert view == {"Ann": 2, "Cem": 0}


def test_a_repeated_key_raises_and_nothing_has_changed(db: Database, orders: Any) -> None:
    view = db.query(lambda: {o.total: o.id for o in orders}).materialize()
    with pytest.raises(DuplicateKeyError, match="2 rows have the same key"):
        orders.add(Order(4, 1, 5.0))
    assert view == {5.0: 1, 2.0: 2, 4.0: 3}
    with db.transaction():
        orders.remove(Order(1, 1, 5.0))
        orders.add(Order(4, 1, 5.0))
    assert view[5.0] == 4


def test_a_key_may_repeat_with_the_same_value(db: Database, orders: Any) -> None:
    nan = float("nan")
    view = db.query(
        lambda: {o.cid: sum([p.total for p in orders if p.cid == o.cid]) for o in orders}
    ).materialize()
    odd = db.query(lambda: {o.id % 1: nan for o in orders}).materialize()
    looked_up = db.query(
        lambda: [{o.cid: o.cid % 2 for o in orders}[p.cid] for p in orders]
    ).materialize()
    for change in (orders.add, orders.remove):
        change(Order(9, 1, 1.5))
        for each in (view, odd, looked_up):
            check(each)
            each.verify()
    assert len(odd) == 1
    orders.clear()
    assert view == {} == odd


def test_groups_of_a_loop_are_a_mapping_of_multisets(db: Database, orders: Any) -> None:
    @db.query
    def totals() -> dict[int, list[float]]:
        found = defaultdict(list)
        for o in orders:
            found[o.cid].append(o.total)
        return found

    view = totals.materialize()
    assert view[1] == Multiset([5.0, 2.0])
    check(view)

    @db.query
    def greatest() -> dict[int, float]:
        found = defaultdict(list)
        for o in orders:
            if o.total > 2:
                found[o.cid].append(o.total)
        return {cid: max(values) for cid, values in found.items()}

    best = greatest.materialize()
    assert best == {1: 5.0, 2: 4.0}
    orders.remove(Order(1, 1, 5.0))
    assert best == {2: 4.0}
    check(best)


def test_what_is_sorted_is_a_sequence(db: Database, orders: Any) -> None:
    query = db.query(lambda: sorted(orders, key=lambda o: o.total, reverse=True)[:2])
    assert isinstance(query, OrderedQuery)
    view = query.materialize()
    assert isinstance(view, OrderedView)
    assert [o.id for o in view] == [1, 3]
    orders.add(Order(7, 9, 4.5))
    assert view[1].id == 7
    check(view)


def test_a_list_over_what_is_sorted_has_parts(db: Database, orders: Any) -> None:
    lists: list[Any] = [
        lambda: [o.total for o in sorted(orders, key=lambda o: o.id)][1:3],
        lambda: [o.total for o in sorted(orders, key=lambda o: o.id, reverse=True)][-2:],
        lambda: [o.total for o in sorted(orders, key=lambda o: o.id) if o.id > 1][:2],
        lambda: [o.id for o in sorted(orders, key=lambda o: (o.total, o.id))[:3]][::-1],
        lambda: [x for x in [o.id for o in sorted(orders, key=lambda o: o.id)][1:] if x > 2],
    ]
    values: list[Any] = [
        lambda: [o.total for o in sorted(orders, key=lambda o: o.id)][1],
        lambda: [o.total for o in sorted(orders, key=lambda o: (-o.total, o.id))][-1],
    ]
    views = [db.query(each).materialize() for each in (*lists, *values)]
    for order in (None, Order(0, 9, 4.5), Order(8, 9, 0.5)):
        if order is not None:
            orders.add(order)
        found = [list(view) for view in views[: len(lists)]] + [
            v.value for v in views[len(lists) :]
        ]
        assert found == [each() for each in (*lists, *values)]
    check(*views)


def test_a_generator_over_what_is_sorted_has_no_parts(db: Database, orders: Any) -> None:
    def first() -> Any:
        ids: Any = (o.id for o in sorted(orders, key=lambda o: o.id))
        return ids[0]

    with pytest.raises(PlanError, match="depends on the order"):
        db.query(first)


def test_ties_are_cut_as_order_by_cuts_them(db: Database, orders: Any) -> None:
    words = db.table(str, name="words")
    rows = ["bb", "aa", "cc", "a", "ccc"]
    words.add_all(rows)
    query = db.query(lambda: sorted(words, key=len)[:2]).materialize()
    best = db.query(lambda: (min(words, key=len), max(words, key=lambda w: -len(w)))).materialize()
    assert list(query) == list(words.order_by(len).limit(2).materialize())
    words.remove("a")
    check(query, best)
    assert list(query) == ["aa", "bb"]


def test_a_value_is_one_row(db: Database, orders: Any) -> None:
    total = db.query(lambda: sum(o.total for o in orders)).materialize()
    both = db.query(lambda: (len(orders), max(o.total for o in orders))).materialize()
    assert total.value == 11.0
    assert both.value == (3, 5.0)
    check(total, both)
    with pytest.raises(ValueError, match="no rows"):
        orders.replace_all([])
    assert len(orders) == 3


def test_sums_of_floats_are_exact(db: Database) -> None:
    numbers = db.table(float, name="numbers")
    total = db.query(lambda: sum(numbers))
    view = total.materialize()
    numbers.add_all([1e100, 0.1, -1e100, 0.2])
    assert view.value == math.fsum([0.1, 0.2]) == total()
    check(view)


def test_a_function_that_calls_itself_is_the_smallest_set(db: Database) -> None:
    edges = db.table(tuple, name="edges")

    @db.query
    def reach() -> set[tuple[int, int]]:
        return {(a, b) for a, b in edges} | {(a, d) for a, b in reach() for c, d in edges if b == c}

    view = reach.materialize()
    edges.add_all([(1, 2), (2, 3), (3, 2)])
    assert set(view) == {(1, 2), (1, 3), (2, 3), (2, 2), (3, 2), (3, 3)} == reach()
    edges.remove((1, 2))
    assert set(view) == {(2, 3), (2, 2), (3, 2), (3, 3)}
    assert reach.on(edges=[(1, 2), (2, 1)]) == {(1, 2), (2, 1), (1, 1), (2, 2)}
    check(view)


def test_functions_that_call_each_other_are_defined_together(db: Database) -> None:
    steps = db.table(tuple, name="steps")

    def even() -> Any:
        return {0} | {b for a, b in steps if a in odd()}

    def odd() -> Any:
        return {b for a, b in steps if a in even()}

    view = db.query(odd).materialize()
    steps.add_all([(n, n + 1) for n in range(6)])
    assert set(view) == {1, 3, 5}
    check(view)
    steps.remove((2, 3))
    assert set(view) == {1}
    check(view)


def test_a_recursion_through_a_negation_is_refused(db: Database, orders: Any) -> None:
    def strange() -> Any:
        return {o.id for o in orders if o.id not in strange()}

    with pytest.raises(StratificationError):
        db.query(strange)


def test_helper_functions_are_read_in_their_place(
    db: Database, customers: Any, orders: Any
) -> None:
    def of(customer: Customer) -> Any:
        return [o for o in orders if o.cid == customer.id]

    def total(rows: Any) -> Any:
        return sum(o.total for o in rows)

    view = db.query(lambda: [(c.name, total(of(c))) for c in customers]).materialize()
    assert sorted(view) == [("Ann", 7.0), ("Bob", 4.0), ("Cem", 0)]
    check(view)


def test_a_collection_that_a_helper_writes_out_is_made_in_the_query_that_reads_it(
    db: Database,
) -> None:
    numbers = db.table(int, name="numbers")

    def of_list(n: int) -> int:
        near = [n, n + 1]
        return sum(m for m in numbers if m in near)

    def of_more(n: int) -> int:
        near = {n: [n], n + 1: []}
        both = ([n], n)
        return sum(m for m in numbers if m in near and [m] != both[0])

    def raising(n: int) -> int:
        near = [6 // n]
        return sum(m for m in numbers if m in near)

    def query() -> list[Any]:
        return [(n, of_list(n), of_more(n), raising(n)) for n in numbers]

    view = db.query(query).materialize()
    numbers.add_all([1, 2, 3])
    assert sorted(view) == [(1, 3, 2, 0), (2, 5, 3, 3), (3, 3, 0, 2)] == sorted(query())
    with pytest.raises(ZeroDivisionError):
        numbers.add(0)
    view.verify()


def test_constants_choose_between_statements(db: Database, orders: Any) -> None:
    def made(least: float | None) -> Any:
        def query() -> Any:
            if least is None:
                return [o.id for o in orders]
            return [o.id for o in orders if o.total >= least]

        return db.query(query)

    assert sorted(made(None).materialize()) == [1, 2, 3]
    assert sorted(made(4.0).materialize()) == [1, 3]


def test_a_variable_keeps_its_value_and_says_so(db: Database, orders: Any) -> None:
    least = 3.0
    view = db.query(lambda: [o.id for o in orders if o.total > least]).materialize()
    least = 4.5
    with pytest.warns(StaleCaptureWarning, match="least"):
        orders.add(Order(8, 1, 4.0))
    assert sorted(view) == [1, 3, 8]


def test_the_own_name_of_a_query_may_be_bound(db: Database, orders: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):

            @db.query
            def again() -> set[int]:
                return {o.id for o in orders} | {n - 1 for n in again() if n > 0}

            view = again.materialize()
            orders.add(Order(5, 1, 1.0))
            assert set(view) == {0, 1, 2, 3, 4, 5}
            orders.remove(Order(5, 1, 1.0))


def test_the_same_text_runs_over_plain_lists(db: Database, customers: Any, orders: Any) -> None:
    query = db.query(lambda: [(c.name, o.id) for c in customers for o in orders if o.cid == c.id])
    given: dict[str, list[Any]] = {
        "customers": [Customer(7, "Ida")],
        "orders": [Order(1, 7, 0.0), Order(2, 8, 0.0)],
    }
    assert query.on(**given) == [("Ida", 1)]
    assert query.on(orders=[]) == []
    with pytest.raises(PlanError, match="reads no 'sales'\n  it reads customers, orders"):
        query.on(sales=[])


def test_a_set_of_each_row_has_each_value_once(db: Database, orders: Any) -> None:
    view = db.query(
        lambda: [(n, sum({o.total for o in orders if o.total == n})) for n in (4.0, 5.0)]
    ).materialize()
    orders.add(Order(9, 3, 4.0))
    assert sorted(view) == [(4.0, 4.0), (5.0, 5.0)]


# `live`


def test_a_generator_is_made_live(db: Database, customers: Any, orders: Any) -> None:
    least = 2
    big = live((o.id, c.name) for o in orders for c in customers if o.cid == c.id > least - 2)
    one, two = live(o.id for o in orders if o.paid), live(o.id for o in orders if not o.paid)
    view = big.materialize()
    assert sorted(view) == [(1, "Ann"), (2, "Ann"), (3, "Bob")]
    assert sorted(one.materialize()) == [2, 3]
    assert list(two.materialize()) == [1]
    check(view)
    assert one.on(orders=[Order(9, 1, 0.0, True)]) == [9]


def test_relations_and_views_are_first_sources(db: Database, orders: Any) -> None:
    paid = orders.where(lambda o: o.paid)
    assert sorted(live(o.id for o in paid).materialize()) == [2, 3]
    view = paid.materialize()
    made = live(o.id + 1 for o in view).materialize()
    assert sorted(made) == [3, 4]
    check(made)


def test_a_changed_variable_of_a_generator_is_noticed(orders: Any) -> None:
    least = 3.0
    view = live(o.id for o in orders if o.total > least).materialize()
    least = 4.5
    with pytest.warns(StaleCaptureWarning, match="least"):
        orders.add(Order(8, 1, 4.0))
    assert sorted(view) == [1, 3, 8]


def test_live_refuses_other_things(orders: Any) -> None:
    with pytest.raises(PlanError, match="takes a generator expression, not list"):
        live([o.id for o in orders])
    with pytest.raises(PlanError, match="nobody has iterated yet"):
        live(x for x in [1, 2])
    begun = (o.id for o in orders)
    next(begun)
    with pytest.raises(PlanError, match="nobody has iterated yet"):
        live(begun)


def test_tables_are_iterated_as_ever(db: Database, orders: Any) -> None:
    assert [o.id for o in orders] == [1, 2, 3]
    assert sum(o.total for o in orders) == 11.0
    relation = orders.where(lambda o: o.paid)
    rows = iter(relation)
    with pytest.raises(PlanError, match="has no rows to iterate over"):
        next(rows)
    with pytest.raises(PlanError, match="has no rows to iterate over"):
        list(relation)


# `check`


def test_check_finds_what_differs(db: Database, orders: Any) -> None:
    query = db.query(lambda: [o.id for o in orders])
    view = query.materialize("ids")
    other = db.query(lambda: [o.id + 1 for o in orders])
    query.text = other.text
    with pytest.raises(VerificationError, match="'ids' is not what its text gives"):
        check(view)


def test_check_verifies_other_views(orders: Any) -> None:
    check(orders.aggregate(Count()).materialize())


# In callables.


def test_a_callable_that_names_a_table_sees_its_changes(customers: Any, orders: Any) -> None:
    known = customers.where(lambda c: any(o.cid == c.id for o in orders)).materialize()
    sums = customers.select(
        lambda c: (c.name, sum(o.total for o in orders if o.cid == c.id))
    ).materialize()
    pairs = customers.join(
        orders,
        on=lambda c, o: c.id == o.cid and o.total == max(p.total for p in orders if p.cid == c.id),
    ).materialize()
    spread = customers.unnest(lambda c: [o.id for o in orders if o.cid == c.id]).materialize()
    assert sorted(c.name for c in known) == ["Ann", "Bob"]
    assert sorted(sums) == [("Ann", 7.0), ("Bob", 4.0), ("Cem", 0)]
    assert sorted((c.name, o.id) for c, o in pairs) == [("Ann", 1), ("Bob", 3)]
    assert sorted((c.name, i) for c, i in spread) == [("Ann", 1), ("Ann", 2), ("Bob", 3)]
    orders.add(Order(4, 3, 1.5))
    assert sorted(c.name for c in known) == ["Ann", "Bob", "Cem"]
    assert ("Cem", 1.5) in sums
    assert len(pairs) == 3
    assert len(spread) == 4
    for view in (known, sums, pairs, spread):
        view.verify()


def test_a_captured_view_is_held(customers: Any, orders: Any) -> None:
    paid: Any = orders.where(lambda o: o.paid).materialize()
    view = customers.where(lambda c: c.id in {o.cid for o in paid}).materialize()
    held = weakref.ref(paid)
    paid = None
    with pytest.warns(StaleCaptureWarning, match="paid"):
        orders.add(Order(4, 3, 1.5, True))
    assert held() is not None
    assert sorted(c.name for c in view) == ["Ann", "Bob", "Cem"]


def test_binding_the_name_of_a_table_anew_warns(db: Database, customers: Any, orders: Any) -> None:
    named = orders
    view = customers.where(lambda c: any(o.cid == c.id for o in named)).materialize()
    named = db.table(Order, name="others")
    with pytest.warns(StaleCaptureWarning, match="named"):
        orders.add(Order(4, 3, 1.5))
    assert len(view) == 3


def unreadable(rows: Any) -> Any:
    while rows:
        return True
    return False


def test_what_cannot_be_read_is_refused(db: Database, customers: Any, orders: Any) -> None:
    with pytest.raises(PlanError, match="cannot be read"):
        customers.where(lambda c: unreadable(o for o in orders if o.cid == c.id))
    others = Database().table(Order, name="others")
    with pytest.raises(PlanError, match="is of another database"):
        customers.where(lambda c: any(o.cid == c.id for o in others))


def test_sources_need_no_keys_of_their_own(db: Database, orders: Any) -> None:
    class Shop:
        sales = orders

        def query(self) -> Iterator[int]:
            return (o.id for o in self.sales if o.paid)

    shop = Shop()
    view = db.query(lambda: [o.id for o in shop.sales if o.paid]).materialize()
    assert sorted(view) == [2, 3]


def test_a_constant_test_that_raises_does_so_where_python_asks_it(
    db: Database, customers: Any
) -> None:
    made = db.query(lambda: [c.id if 1 // 0 else 0 for c in customers])
    whole = db.query(lambda: (len(customers) if 1 // 0 else 2, 1))
    customers.clear()
    check(made.materialize())
    with pytest.raises(ZeroDivisionError):
        whole.materialize()


def test_a_name_whose_value_is_not_read_raises_what_python_raises(
    db: Database, customers: Any, orders: Any
) -> None:
    customers.clear()
    zero = 0

    def query() -> list[int]:
        unread = len(orders) if 1 // zero in [c.id for c in customers] else 2  # noqa: F841
        return [o.id for o in orders]

    made = db.query(query)
    with pytest.raises(ZeroDivisionError):
        made.on(orders=[], customers=[])
    with pytest.raises(ZeroDivisionError):
        made.materialize()


def test_a_list_that_is_made_of_a_row_is_iterated_over_in_a_query_of_it(
    db: Database, customers: Any, orders: Any
) -> None:
    texts: list[Any] = [
        lambda: [c.id for c in customers for n in {len(orders) for x in [a * 2 for a in c.name]}],
        lambda: [sum(o.total + x for x in [c.id, 3] for o in orders) for c in customers],
        lambda: [sum(o.total for x in sorted(c.name) for o in orders) for c in customers],
        lambda: [n for c in customers for n in {len(orders) for x in (a * 2 for a in c.name)}],
        lambda: [sum(o.total for o in orders if o.cid in [c.id, 3]) for c in customers],
    ]
    views = [db.query(text).materialize() for text in texts]
    check(*views)
    customers.add(Customer(4, ""))
    orders.add(Order(8, 3, 2.5))
    check(*views)
    customers.clear()
    assert [len(view) for view in views] == [0] * len(views)


def test_constants_may_leave_nothing_of_the_relations_that_a_query_names(
    db: Database, customers: Any
) -> None:
    with_customers = False
    made = db.query(lambda: len(customers) if with_customers else 0)
    assert list(made.materialize()) == [0]


def test_in_of_a_keyed_table_or_of_groups_is_said_in_other_words(db: Database) -> None:
    keyed: Any = db.table(Customer, name="keyed", key="id")
    keyed.add_all([Customer(1, "Ann"), Customer(2, "Bob")])
    numbers = db.table(int, name="numbers")
    numbers.add_all([1, 3])
    sizes = keyed.group_by(lambda c: c.id).aggregate(Count()).materialize()
    refused: Any = (
        lambda: [n for n in numbers if n in keyed],
        lambda: [n for n in numbers if n not in sizes],
    )
    for each in refused:
        with pytest.raises(PlanError, match=r"means a key.*\n.*column \d+\n.*asks for a key"):
            db.query(each)
    with pytest.raises(PlanError, match="means a key"):
        numbers.where(lambda n: n in keyed)

    by_key = db.query(lambda: [n for n in numbers if any(c.id == n for c in keyed)]).materialize()
    by_row = db.query(lambda: [c for c in keyed if c in list(keyed)]).materialize()
    assert list(by_key) == [1] and len(by_row) == 2
    check(by_key, by_row)


BEFORE = {
    "function": "def reach(): return {(9, 1)}",
    "function_over_rows": "def reach(): return {e for e in edges}",
    "lambda": "reach = lambda: {(9, 9)}",
    "class": "class reach: pass",
    "number": "reach = 5",
    "nothing": "reach = 'x'",
    "builtin": "reach = max",
    "import": "from os import getcwd as reach",
    "relation": "reach = edges",
    "query": "reach = db.query(lambda: {e for e in edges})",
}
RECURSION = """
@db.query
def reach():
    return {(a, b) for a, b in edges} | {(a, d) for a, b in reach() for c, d in edges if b == c}
"""


def _run(text: str, name: str) -> dict[str, Any]:
    """Run a text in a database with edges; `linecache` knows its lines."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    db = Database()
    edges = db.table(tuple, name="edges")
    edges.add_all([(1, 2), (2, 3)])
    names: dict[str, Any] = {"db": db, "edges": edges, "__name__": "shop"}
    exec(compile(text, name, "exec"), names)
    return names


@pytest.mark.parametrize("before", BEFORE)
def test_a_recursion_calls_itself_whatever_its_name_stood_for(before: str) -> None:
    view = _run(BEFORE[before] + RECURSION, f"<{before} before>")["reach"].materialize()
    assert set(view) == {(1, 2), (2, 3), (1, 3)}
    check(view)


def test_the_name_of_a_query_may_be_that_of_a_builtin() -> None:
    view = _run(RECURSION.replace("reach", "max"), "<max>")["max"].materialize()
    assert set(view) == {(1, 2), (2, 3), (1, 3)}


def test_a_name_that_a_later_function_has_is_that_function() -> None:
    text = RECURSION.replace("@db.query", "") + "\nfirst = reach\ndef reach(): return {(7, 1)}"
    view = _run(text + "\nfound = db.query(first)", "<later>")["found"].materialize()
    assert set(view) == {(1, 2), (2, 3), (7, 2)}


def test_a_method_of_the_name_of_a_function_calls_the_function() -> None:
    text = "def reach(): return {(9, 1)}\nclass Shop:\n" + "".join(
        f"    {line}\n" for line in RECURSION.strip().splitlines()
    )
    view = _run(text, "<method>")["Shop"].reach.materialize()
    assert set(view) == {(1, 2), (2, 3), (9, 2)}


RECURSION_OF_TWO = """
def more(): return {(a, d) for a, b in reach() for c, d in edges if b == c}
@db.query
def reach(): return {(a, b) for a, b in edges} | more()
"""
"""The query names itself in another function only."""
LOCAL = """
def made(reach=None):
{}
    return reach
reach = made(lambda: {{(9, 1)}})
"""


@pytest.mark.parametrize("before", BEFORE)
def test_a_recursion_through_another_function_is_one_whatever_its_name_stood_for(
    before: str,
) -> None:
    view = _run(BEFORE[before] + RECURSION_OF_TWO, f"<{before} of two>")["reach"].materialize()
    assert set(view) == {(1, 2), (2, 3), (1, 3)}
    check(view)


@pytest.mark.parametrize("text", [RECURSION, RECURSION_OF_TWO])
@pytest.mark.parametrize("before", ["pass", "def reach(): return {(9, 1)}"])
def test_a_local_recursion_calls_itself_whatever_its_name_stood_for(text: str, before: str) -> None:
    lines = [f"    {line}" for line in (before + text).splitlines()]
    text = LOCAL.format("\n".join(lines))
    view = _run(text, f"<local {hash(text)}>")["reach"].materialize()
    assert set(view) == {(1, 2), (2, 3), (1, 3)}
    check(view)


MUTUAL = """
@db.query
def odd() -> set:
    return {(a, b) for a, b in edges} | {(a, d) for a, b in EVEN for c, d in edges if b == c}
@db.query
def even() -> set:
    return {(a, d) for a, b in ODD for c, d in edges if b == c}
"""


@pytest.mark.parametrize("uses", [("odd()", "even()"), ("odd", "even()")])
@pytest.mark.parametrize("first", ["odd", "even"])
@pytest.mark.parametrize("is_local", [False, True])
def test_queries_that_call_each_other_are_read_when_they_are_used(
    uses: tuple[str, str], first: str, is_local: bool
) -> None:
    text = MUTUAL.replace("ODD", uses[0]).replace("EVEN", uses[1])
    if is_local:
        text = LOCAL.format("\n".join(f"    {line}" for line in text.splitlines()))
        text = text.replace("return reach", "return odd, even").replace("reach = ", "odd, even = ")
    names = _run(text, f"<mutual {is_local} {uses}>")
    queries = names["odd"], names["even"]
    views = [each.materialize() for each in (queries if first == "odd" else queries[::-1])]
    edges = names["edges"]
    for change in (edges.add, edges.remove):
        for edge in ((3, 4), (4, 1)):
            change(edge)
            check(*views)
    assert [set(query()) for query in queries] == [{(1, 2), (2, 3)}, {(1, 3)}]


def test_a_query_of_one_that_is_never_defined_says_so_when_it_is_used() -> None:
    query = _run("@db.query\ndef early(): return {x for x in late()}", "<never>")["early"]
    for use in (query.materialize, query.explain, lambda: repr(query)):
        with pytest.raises(PlanError, match="late has no value yet"):
            use()


def test_a_dictionary_cannot_be_written_before_what_it_calls() -> None:
    text = "@db.query\ndef early(): return {a: b for a, b in late()}\n"
    text += "@db.query\ndef late(): return {(1, 2) for e in edges}"
    query = _run(text, "<dictionary>")["early"]
    with pytest.raises(PlanError, match="written before the queries that it calls"):
        query.materialize()


def test_a_query_may_call_one_that_had_its_name() -> None:
    text = "@db.query\ndef reach(): return {e for e in edges if e[0] < 2}\nfirst = reach"
    text += RECURSION.replace("for a, b in edges}", "for a, b in first()}")
    view = _run(text, "<first>")["reach"].materialize()
    assert set(view) == {(1, 2), (1, 3)}
    check(view)


def test_a_method_may_call_the_query_of_its_name() -> None:
    text = RECURSION + "class Shop:\n    @db.query\n"
    text += "    def reach(): return {(b, a) for a, b in reach()}"
    view = _run(text, "<shop>")["Shop"].reach.materialize()
    assert set(view) == {(2, 1), (3, 2), (3, 1)}
    check(view)


OVER_OTHERS: dict[str, Any] = {
    "rows": lambda t, big, odd, by: lambda: [r + 1 for r in big],
    "in": lambda t, big, odd, by: lambda: {r for r in odd if r in big},
    "two": lambda t, big, odd, by: lambda: [(r, s) for r in big for s in odd if r == s],
    "length": lambda t, big, odd, by: lambda: len(big),
    "sum": lambda t, big, odd, by: lambda: sum(r for r in big),
    "sorted": lambda t, big, odd, by: lambda: sorted(r for r in big),
    "pairs": lambda t, big, odd, by: lambda: [value for key, value in by],
}


@pytest.mark.parametrize("name", OVER_OTHERS)
def test_a_query_over_another_one_by_its_name_is_checked(name: str) -> None:
    db = Database()
    t = db.table(int, name="t")
    t.add_all([1, 5, 7])
    big = db.query(lambda: [r for r in t if r > 2])
    odd = db.query(lambda: {r for r in t if r % 2})
    by = db.query(lambda: {r % 3: sum(x for x in t if x % 3 == r % 3) for r in t})
    view = db.query(OVER_OTHERS[name](t, big, odd, by)).materialize()
    for change in (t.add, t.add, t.remove):
        change(9)
        check(view)
