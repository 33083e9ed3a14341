"""Aggregates over joins that are kept as sums by key: right after every commit, for any changes."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reactive import Avg, Count, CountDistinct, Database, Max, Min, Sum
from reactive.engine.operators.join import SumsBy
from tests.budget import seeds


@dataclass(frozen=True, slots=True)
class Order:
    customer: Any
    product: Any
    amount: Any


@dataclass(frozen=True, slots=True)
class Customer:
    id: Any
    region: Any


@dataclass(frozen=True, slots=True)
class Region:
    id: Any
    name: Any


@dataclass(frozen=True, slots=True)
class Product:
    id: Any
    price: Any


TABLES = (Order, Customer, Region, Product)


def of_two(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(
        Sum(lambda o, c: o.amount), Count(), Avg(lambda o, c: o.amount)
    )


def of_the_right(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(products, left_key=lambda o: o.product, right_key=lambda p: p.id)
    return both.group_by(lambda o, p: o.customer).aggregate(Sum(lambda o, p: p.price), Count())


def of_all(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id and o.amount != 2)
    return both.aggregate(Sum(lambda o, c: o.amount), Sum(lambda o, c: c.region), Count())


def a_chain(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        regions, on=lambda o, c, r: c.region == r.id
    )
    return three.group_by(lambda o, c, r: r.name).aggregate(Sum(lambda o, c, r: o.amount), Count())


def asking_both_below(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    """Join so that the rows of the inner join are kept: its condition reads both sides."""
    both = orders.join(customers, on=lambda o, c: o.customer == c.id and o.amount != c.region)
    three = both.join(regions, on=lambda o, c, r: c.region == r.id)
    return three.aggregate(Count(), Sum(lambda o, c, r: o.amount))


def asking_both_between(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, left_key=lambda o: o.customer, right_key=lambda c: c.id)
    some = both.where(lambda o, c: o.product < c.region or o.amount > 1)
    three = some.join(regions, left_key=lambda o, c: c.region, right_key=lambda r: r.id)
    return three.aggregate(Count(), Sum(lambda o, c, r: c.region))


def asking_both_of_a_product(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer < c.id)
    three = both.join(products, on=lambda o, c, p: o.product == p.id)
    return three.aggregate(Count(), Sum(lambda o, c, p: p.price))


def a_star(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        products, on=lambda o, c, p: o.product == p.id
    )
    return (
        three.select(lambda o, c, p: (c.region, p.price, o.amount))
        .group_by(lambda r: (r[0], r[1]))
        .aggregate(Sum(lambda r: r[2]), Avg(lambda r: r[1]), Count())
    )


def mixed_groups(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        regions, on=lambda o, c, r: c.region == r.id
    )
    return three.group_by(lambda o, c, r: (c.region + r.id) % 2).aggregate(
        Sum(lambda o, c, r: o.amount), Sum(lambda o, c, r: c.region), Count()
    )


def over_a_product(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(products)
    return both.aggregate(Sum(lambda o, p: o.amount), Sum(lambda o, p: p.price), Count())


def products(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        products, on=lambda o, c, p: o.product == p.id
    )
    return three.group_by(lambda o, c, p: c.region).aggregate(
        Sum(lambda o, c, p: 2 * o.amount * p.price), Avg(lambda o, c, p: p.price * c.region)
    )


def a_product_of_sums(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    return orders.join(products, on=lambda o, p: o.product == p.id).aggregate(
        Sum(lambda o, p: o.amount * p.price), Sum(lambda o, p: o.amount), Count()
    )


def extremes_of_a_chain(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        regions, on=lambda o, c, r: c.region == r.id
    )
    return three.group_by(lambda o, c, r: r.name).aggregate(
        Min(lambda o, c, r: o.amount),
        Sum(lambda o, c, r: o.amount),
        Max(lambda o, c, r: o.amount + c.id),
        Count(),
    )


# Of equal group keys, such as 1.0 and True, the first inserted one is shown.
def values_of_one_side(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(products, on=lambda o, p: o.product == p.id)
    return both.group_by(lambda o, p: p.price).aggregate(
        CountDistinct(lambda o, p: p.id), Max(lambda o, p: p.price + p.id), Avg(lambda o, p: p.id)
    )


def all_values(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    three = orders.join(customers, on=lambda o, c: o.customer == c.id).join(
        products, on=lambda o, c, p: o.product == p.id
    )
    return three.aggregate(
        CountDistinct(lambda o, c, p: o.amount + p.price), Min(lambda o, c, p: c.region), Count()
    )


QUERIES = (
    extremes_of_a_chain,
    values_of_one_side,
    all_values,
    of_two,
    of_the_right,
    of_all,
    a_chain,
    asking_both_below,
    asking_both_between,
    asking_both_of_a_product,
    a_star,
    mixed_groups,
    over_a_product,
    products,
    a_product_of_sums,
)
OF_VALUES = (extremes_of_a_chain, all_values)
"""Queries that show the least or greatest value: of equal ones, such as 1.0 and True, any."""
PLAIN: tuple[Any, ...] = (0, 1, 2, 3)
ODD: tuple[Any, ...] = (
    *(0, 1, True, 1.0, 0.1, 1e300, -1e300, math.nan, math.inf, -math.inf, None, "a"),
    *(Decimal("0.1"), Fraction(1, 3), Decimal("NaN"), 2, 3),
)


class Side:
    """A database with all tables and a view."""

    def __init__(self, query: Any, *, optimize: bool) -> None:
        self.db = Database(optimize=optimize)
        self.tables = [self.db.table(kind) for kind in TABLES]
        self.relation = query(*self.tables)
        self.view = self.relation.materialize()
        self.told: Counter[Any] = Counter()
        self.subscription = self.view.subscribe(self._hear, snapshot=True)

    def _hear(self, delta: Any) -> None:
        for row, weight in delta.items():
            self.told[row] += weight

    def commit(self, changes: list[tuple[int, Any, int]]) -> str | None:
        """Make changes, if possible; return the text of the error, if any."""
        try:
            with self.db.transaction():
                for place, row, weight in changes:
                    if weight > 0:
                        self.tables[place].add(row)
                    else:
                        self.tables[place].discard(row)
        except Exception as error:
            return type(error).__name__
        return None

    def shown(self) -> str:
        return str(sorted(map(str, self.view)))


def history(random: Random, values: tuple[Any, ...], commits: int) -> Any:
    """Draw commits of few and of many changes; inserted rows are deleted later."""
    rows: list[tuple[int, Any]] = []
    for _ in range(commits):
        changes = []
        for _ in range(random.choice((1, 1, 2, 5, 30))):
            if rows and random.random() < 0.45:
                place, row = rows.pop(random.randrange(len(rows)))
                changes.append((place, row, -1))
                continue
            place = random.randrange(len(TABLES))
            kind = TABLES[place]
            row = kind(*(random.choice(values) for _ in kind.__dataclass_fields__))
            rows.append((place, row))
            changes.append((place, row, 1))
        yield changes


def sums(side: Side) -> list[SumsBy]:
    found = (node.operator for node in side.db._engine.graph.nodes())
    return [operator for operator in found if isinstance(operator, SumsBy)]


@pytest.mark.long
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", seeds(6))
def test_it_equals_the_plan_as_written(query: Any, seed: int) -> None:
    fast, plain = (Side(query, optimize=optimize) for optimize in (True, False))
    assert sums(fast), fast.relation.explain()
    assert "groups of sums" in str(fast.relation.explain())
    for changes in history(Random(seed), PLAIN, 40):
        assert fast.commit(changes) == plain.commit(changes)
        fast.view.verify()
        assert fast.shown() == plain.shown()
        assert {k: n for k, n in fast.told.items() if n} == dict(fast.view.zset().items())
    assert sums(fast)
    late = fast.relation.materialize()
    assert sorted(map(str, late)) == sorted(map(str, fast.view))
    with fast.db.transaction():
        for table in fast.tables:
            table.clear()
    assert fast.view.stats().rows == Side(query, optimize=True).view.stats().rows


@pytest.mark.parametrize("query", [query for query in QUERIES if query is not values_of_one_side])
@pytest.mark.parametrize("seed", seeds(8))
def test_odd_values_give_what_they_give_as_written(query: Any, seed: int) -> None:
    fast, plain = (Side(query, optimize=optimize) for optimize in (True, False))
    for changes in history(Random(seed), ODD, 30):
        raised, error = fast.commit(changes), plain.commit(changes)
        assert (raised is None) is (error is None), (raised, error)  # one may be met before another
        if query in OF_VALUES:
            assert dict(fast.view.zset().items()) == dict(plain.view.zset().items())
        else:
            assert_alike(fast.view, plain.view)
    if query not in OF_VALUES:
        assert_alike(fast.relation.materialize(), fast.view)


def assert_alike(view: Any, other: Any) -> None:
    """Check that views have equal rows, with identical values except the first.

    Of equal keys, as 0 and 0.0, a group may show any (`docs/optimizer.md`, "Equal rows are
    interchangeable").
    """
    assert dict(view.zset().items()) == dict(other.zset().items())
    assert sorted(str(row[1:]) for row in view) == sorted(str(row[1:]) for row in other)


def test_a_row_without_partner_may_have_what_cannot_be_summed() -> None:
    side = Side(of_two, optimize=True)
    side.tables[1].add(Customer(1, "north"))
    side.tables[0].add(Order(1, 1, 5))
    assert sums(side)
    side.tables[0].add(Order(2, 1, "five"))
    assert not sums(side)  # it is computed without factors from now on
    assert "groups of sums" not in str(side.relation.explain())
    assert "| sums" not in side.view.explain()
    assert list(side.view) == [("north", 5, 1, 5.0)]
    side.tables[0].add(Order(1, 1, 7))
    assert list(side.view) == [("north", 12, 2, 6.0)]
    with pytest.raises(TypeError, match="cannot sum 'five'") as info:
        side.tables[1].add(Customer(2, "north"))
    assert any("Customer(id=2" in note for note in info.value.__notes__)
    assert list(side.view) == [("north", 12, 2, 6.0)]
    assert {k: n for k, n in side.told.items() if n} == {("north", 12, 2, 6.0): 1}


def test_so_may_a_table_that_is_full_when_the_view_is_made() -> None:
    db = Database()
    tables = [db.table(kind) for kind in TABLES]
    tables[0].add(Order(2, 1, "five"))
    view = of_two(*tables).materialize()
    tables[0].add(Order(1, 1, 5))
    tables[1].add(Customer(1, "north"))
    assert list(view) == [("north", 5, 1, 5.0)]


def test_two_views_share_sums_and_leave_them_together() -> None:
    side = Side(of_two, optimize=True)
    other = of_two(*side.tables).where(lambda region, total, count, mean: total > 3).materialize()
    assert len(sums(side)) == 1
    side.tables[1].add(Customer(1, "north"))
    side.tables[0].add(Order(1, 1, 5))
    side.tables[0].add(Order(3, 1, "five"))
    side.tables[0].add(Order(1, 1, 1))
    assert list(side.view) == list(other) == [("north", 6, 2, 3.0)]


def test_a_customer_that_moves_is_one_step_however_many_orders_it_has() -> None:
    work = []
    for count in (10, 1_000):
        side = Side(of_two, optimize=True)
        side.tables[1].add(Customer(1, "north"))
        side.tables[0].add_all(Order(1, n, n) for n in range(count))
        before = side.view.stats().touched
        side.tables[1].update(Customer(1, "north"), Customer(1, "south"))
        work.append(side.view.stats().touched - before)
    assert work[0] == work[1]


def test_state_is_by_key_and_not_by_row() -> None:
    side = Side(of_two, optimize=True)
    side.tables[1].add_all(Customer(n, n % 3) for n in range(10))
    side.tables[0].add_all(Order(n % 10, n, n) for n in range(5_000))
    assert side.view.stats().rows < 50
    assert Side(of_two, optimize=False).view.stats().rows == 0


def test_what_is_rolled_back_elsewhere_is_rolled_back_in_sums() -> None:
    side = Side(a_chain, optimize=True)
    orders: Any = side.tables[0]
    divided = orders.select(lambda o: 1 / o.amount).materialize()
    side.tables[2].add(Region(1, "north"))
    side.tables[1].add(Customer(1, 1))
    side.tables[0].add(Order(1, 1, 2))
    state = str([operator.contents() for operator in sums(side)])
    for changes in ([(0, Order(1, 1, 0), 1)], [(1, Customer(1, 1), 1), (0, Order(1, 2, 0), 1)]):
        assert side.commit(changes) == "ZeroDivisionError"
        assert str([operator.contents() for operator in sums(side)]) == state
        side.view.verify()
    side.tables[0].add(Order(1, 1, 4))
    side.view.verify()
    assert sorted(divided) == [0.25, 0.5]


def test_an_interrupt_in_the_middle_is_recovered_from() -> None:
    side = Side(of_two, optimize=True)
    side.tables[1].add(Customer(1, "north"))
    (kept,) = sums(side)

    class Interrupting(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            raise KeyboardInterrupt

    whole, kept.sums = kept.sums, Interrupting(kept.sums)
    with pytest.raises(KeyboardInterrupt):
        side.tables[0].add(Order(1, 1, 5))
    kept.sums = whole
    side.tables[0].add(Order(1, 1, 6))
    side.view.verify()
    assert list(side.view) == [("north", 6, 1, 6.0)]


def test_an_interrupt_between_two_keys_does_not_leave_half_of_a_commit() -> None:
    side = Side(of_two, optimize=True)
    side.tables[1].add_all([Customer(1, "north"), Customer(2, "north")])
    (kept,) = sums(side)

    class Interrupting(dict[Any, Any]):
        def get(self, key: Any, default: Any = None) -> Any:
            if key == 2:
                raise KeyboardInterrupt
            return super().get(key, default)

    kept.sums = Interrupting(kept.sums)
    with pytest.raises(KeyboardInterrupt):
        side.tables[0].add_all([Order(1, 1, 5), Order(2, 1, 6)])
    assert not len(side.view)
    side.tables[0].add(Order(1, 1, 7))
    side.view.verify()
    assert list(side.view) == [("north", 7, 1, 7.0)]
    side.tables[1].update(Customer(1, "north"), Customer(1, "south"))
    side.view.verify()


def no_sum(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(CountDistinct(lambda o, c: o.amount))


def of_both(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(Sum(lambda o, c: o.amount + c.region))


def by_a_condition(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id and o.amount < c.region)
    return both.group_by(lambda o, c: c.region).aggregate(Count())


def by_both(orders: Any, customers: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: (o.product, c.region)).aggregate(Count())


@pytest.mark.parametrize("query", [no_sum, of_both, by_a_condition, by_both])
def test_where_sums_do_not_tell_all_rows_are_kept(query: Any) -> None:
    db = Database()
    orders, customers = db.table(Order), db.table(Customer)
    relation = query(orders, customers)
    view = relation.materialize()
    assert "groups of sums" not in str(relation.explain())
    orders.add(Order(1, 2, 3))
    customers.add(Customer(1, 4))
    view.verify()


def test_tables_that_are_not_stored_have_no_factors() -> None:
    db = Database()
    orders, customers = db.table(Order, stored=False), db.table(Customer)
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    relation = both.group_by(lambda o, c: c.region).aggregate(Count())
    assert "groups of sums" not in str(relation.explain())


class Amounts:
    """A method as a callable: the attributes that it reads are constants, by identity."""

    def __init__(self) -> None:
        self.twice = False

    def of(self, order: Order) -> list[Any]:
        return [order.amount, order.amount] if self.twice else [order.amount]


@pytest.mark.parametrize("views", [1, 2, 3])
def test_a_condition_that_raises_without_a_partner_does_not_stop_commits(views: int) -> None:
    """One view of a query continues, and several with equal or identical plans do."""
    db = Database()
    orders, customers, regions = db.table(Order), db.table(Customer), db.table(Region)
    lived: Any = customers.join(regions, on=lambda c, r: r.id == c.region).where(
        lambda c, r: (lambda region: region.name is not None)(r)
    )
    query: Any = (
        orders.select_many(Amounts().of)
        .join(lived, on=lambda amount, c: 10 % amount % 2 == 0)
        .aggregate(Sum(lambda amount, c: c[0].id), Count())
    )
    made = [query.materialize() for _ in range(views)]
    made.append(query.where(lambda total, count: count >= 0).materialize())
    for amount in (0, 5, 0):  # without a partner: the condition is evaluated for no pair
        orders.add(Order(1, 2, amount))
        for view in made:
            assert list(view) == [(0, 0)]
            view.verify()
    customers.add(Customer(1, 2))
    with pytest.raises(ZeroDivisionError):
        regions.add(Region(2, "north"))
    assert [list(view) for view in made] == [[(0, 0)]] * (views + 1)
    orders.remove_all([Order(1, 2, 0)] * 2)
    regions.add(Region(2, "north"))
    assert [list(view) for view in made] == [[(1, 1)]] * (views + 1)


@pytest.mark.parametrize("inside", [lambda x, y: True, lambda x, y: x[1] == y[0]])
def test_the_right_side_may_be_a_join_itself(inside: Any) -> None:
    random, views, tables = Random(5), [], []
    for optimize in (True, False):
        table: Any = Database(optimize=optimize).table(tuple)
        pairs = table.join(table, on=inside)
        joined = table.join(pairs, left_key=lambda x: x[1], right_key=lambda y: y[1][1])
        views.append(
            joined.group_by(lambda x, y: x[0])
            .aggregate(Count(), Sum(lambda x, y: len(y[0][1])), Max(lambda x, y: x[1]))
            .materialize()
        )
        tables.append(table)
    assert "sums by" in str(views[0].explain())
    held: list[Any] = []
    for _ in range(40):
        if held and random.random() < 0.4:
            row = held.pop(random.randrange(len(held)))
            for table in tables:
                table.remove(row)
        else:
            held.append((random.choice(("ab", "cd", "b")), random.choice(("ab", "cd", "bb"))))
            for table in tables:
                table.add(held[-1])
        assert Counter(views[0]) == Counter(views[1])
    views[0].verify()


def test_sums_are_known_as_they_were_of_the_keys_that_are_asked_for() -> None:
    owner: Any = None
    kept = SumsBy(dict, 1, owner, "", by_group=False)
    kept.step([("a", (1, 5)), ("b", (2, 6)), ("c", (1, 1))])
    changes = kept.step([("a", (1, 2)), ("b", (-2, -6)), ("d", (1, 1))])
    find = kept.find_before(changes, ["a", "b", "c", "d"])
    assert [find(key, None) for key in "abcd"] == [(1, 5), (2, 6), (1, 1), None]
    assert kept.find_before(changes, ["c"])("c", None) == (1, 1)
    assert [kept.sums.get(key) for key in "abcd"] == [(2, 7), None, (1, 1), (1, 1)]


def means_without_none(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: c.region).aggregate(
        Avg(lambda o, c: o.amount if o.amount != 2 else None, skip_none=True),
        Avg(lambda o, c: c.id if c.region != 1 else None, skip_none=True),
        Avg(lambda o, c: o.amount),
    )


def means_of_a_left_join(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = customers.left_join(orders, on=lambda c, o: c.id == o.customer)
    return both.group_by(lambda c, o: c.region).aggregate(
        Avg(lambda c, o: o.amount if o is not None else None, skip_none=True), Count()
    )


def means_beside_rows(orders: Any, customers: Any, regions: Any, products: Any) -> Any:
    both = orders.join(customers, on=lambda o, c: o.customer == c.id)
    return both.group_by(lambda o, c: o.product).aggregate(
        Avg(lambda o, c: c.region if c.region != 2 else None, skip_none=True),
        Avg(lambda o, c: o.amount if o.amount != 2 else None, skip_none=True),
    )


@pytest.mark.parametrize("query", [means_without_none, means_of_a_left_join, means_beside_rows])
@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("values", [PLAIN, (0, 1.5, 2, Decimal("0.5"), None, math.nan)])
def test_means_that_skip_none_count_values(query: Any, seed: int, values: Any) -> None:
    fast, plain = (Side(query, optimize=optimize) for optimize in (True, False))
    assert "groups of sums" in str(fast.relation.explain())
    for changes in history(Random(seed), values, 40):
        raised, error = fast.commit(changes), plain.commit(changes)
        assert (raised is None) is (error is None), (raised, error)
        assert dict(fast.view.zset().items()) == dict(plain.view.zset().items())


@pytest.mark.parametrize("query", [a_chain, mixed_groups])
def test_sums_of_pairs_that_are_loaded_from_a_file_follow_both_sides(
    query: Any, tmp_path: Path
) -> None:
    for first in (True, False):
        db = Database(tmp_path / "shop.db")
        tables = [db.table(kind, name=kind.__name__) for kind in TABLES]
        view = query(*tables).materialize("view", kept=True)
        if first:
            tables[2].add_all([Region(1, 7), Region(2, 8)])
            tables[1].add_all(Customer(n, 1 + n % 2) for n in range(9))
            tables[0].add_all(Order(n % 9, n, n) for n in range(60))
        else:
            tables[1].remove(Customer(0, 1))
            view.verify()
            tables[1].add(Customer(0, 2))
        view.verify()
        db.close()
