"""Code that mypy and pyright accept, both strict, with the inferred types. It also runs."""

# pyright: strict, reportUnnecessaryTypeIgnoreComment=true

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, assert_type

from reactive import (
    Aggregate,
    ApproxCountDistinct,
    ArgMin,
    Avg,
    Batch,
    BoolOr,
    Changes,
    Collect,
    Count,
    CountDistinct,
    Database,
    Delta,
    Family,
    GroupedQuery,
    GroupedRelation,
    GroupedView,
    Groups,
    Ingestion,
    Lag,
    LastBy,
    Max,
    Median,
    Min,
    Monoid,
    MostCommon,
    Multiset,
    NamedGroups,
    NamedGroupsView,
    OrderedRelation,
    OrderedView,
    Quantile,
    Query,
    Recurrence,
    Relation,
    RowError,
    RowWindow,
    Silent,
    Source,
    StringJoin,
    Subscription,
    Sum,
    Table,
    Variance,
    View,
    WatchedTable,
    asc,
    desc,
    files,
    fixpoint,
    from_rows,
    live,
    of,
    tracked,
)
from tests.types.rows import Customer, Order, Totals, Town


class Shop:
    """Tables with the types of their rows and keys."""

    def __init__(self) -> None:
        self.db = Database()
        self.orders = self.db.table(Order, key=lambda o: o.id)
        self.customers = self.db.table(Customer, key="name")
        self.words = self.db.table(str)
        self.both = self.orders.join(self.customers, on=lambda o, c: o.customer == c.name)


def of_customer(name: str) -> Relation[Order]:
    return Shop().orders.where(lambda o: o.customer == name)


def of_customer_and_id(name: str, least: int) -> Relation[Order, Customer]:
    return Shop().both.where(lambda o, c: c.name == name and o.id > least)


def debtors() -> list[tuple[str, float]]:
    return []


def counts() -> dict[str, int]:
    return {}


def queries() -> None:
    db = Database()
    assert_type(db.query(debtors), Query[tuple[str, float]])
    assert_type(db.query(counts), GroupedQuery[str, int])
    words = db.table(str)
    assert_type(live(len(word) for word in words), Query[int])
    assert_type(db.query(debtors).materialize(), View[tuple[str, float]])


def families() -> None:
    shop = Shop()
    db = shop.db
    assert_type(db.family(of_customer), Family[str, Order])
    pairs = db.family(of_customer_and_id)
    assert_type(pairs, Family[tuple[str, int], Order, Customer])
    assert_type(list(pairs), list[tuple[str, int]])


def tables() -> None:
    shop = Shop()
    assert_type(shop.orders, Table[Order, int])
    assert_type(shop.customers, Table[Customer, Any])
    assert_type(shop.words, Table[str])
    shop.orders.add(Order(3, "ann", 2.5))
    assert_type(shop.orders[3], Order)
    assert_type(shop.orders.get(4), Order | None)
    shop.orders.delete(3)
    said: Table[Customer, str] = shop.customers
    said.add(Customer("ann", "Bonn"))
    assert_type(said["ann"], Customer)
    any_key: Table[Customer] = said
    assert_type(list(any_key), list[Customer])
    assert_type([row.upper() for row in shop.words], list[str])


def joins() -> None:
    shop = Shop()
    assert_type(shop.both, Relation[Order, Customer])
    assert_type(shop.both.where(lambda o, c: c.town == "Bonn"), Relation[Order, Customer])
    assert_type(shop.both.select(lambda o, c: (c.town, o.total)), Relation[tuple[str, float]])
    outer = shop.orders.left_join(shop.customers, on=lambda o, c: o.customer == c.name)
    assert_type(outer, Relation[Order, Customer | None])
    near = shop.orders.left_asof_join(shop.customers, at=lambda o: o.total, of=lambda c: c.name)
    assert_type(near, Relation[Order, Customer | None])
    assert_type(outer.materialize().snapshot(), list[tuple[Order, Customer | None]])


def appended(ids: tuple[int, ...], order: Order) -> tuple[int, ...]:
    return (*ids, order.id)[-2:]


def windows() -> None:
    shop = Shop()
    ranked = shop.orders.over(by=lambda o: o.customer, order=desc(lambda o: o.total))
    assert_type(ranked, Relation[Order, RowWindow])
    assert_type(ranked.where(lambda o, w: w.rank() <= 3), Relation[Order, RowWindow])
    assert_type(
        ranked.select(lambda o, w: (o.id, w.rank(), w.lag(o.id), w.sum(o.total))),
        Relation[tuple[int, int, int | None, float]],
    )
    assert_type(ranked.select(lambda o, w: w.lag(o.id, default="none")), Relation[int | str])
    assert_type(ranked.select(lambda o, w: w.avg(o.total, rows=(-2, 0))), Relation[float | None])
    assert_type(ranked.select(lambda o, w: w.max(o.id)), Relation[int])
    assert_type(ranked.group_by(lambda o, w: w.ntile(4)), Groups[int, Order, RowWindow])
    floor = ranked.select(lambda o, w: w.scan(o.total, lambda rest, x: max(0.0, rest - x), 9.0))
    assert_type(floor, Relation[float])
    assert_type(ranked.select(lambda o, w: w.scan(o.id, max)), Relation[int])
    none: tuple[int, ...] = ()
    assert_type(ranked.select(lambda o, w: w.scan(o, appended, none)), Relation[tuple[int, ...]])
    assert_type(ranked.select(lambda o, w: w.ema(o.total, alpha=0.5)), Relation[float])
    twice = ranked.over(by="customer", order=lambda o, w: w.row_number())
    assert_type(twice.select(lambda o, w, v: v.first(o.id)), Relation[int])


def recurrences() -> None:
    shop = Shop()
    kept = shop.db.feedback(
        str, lambda y: shop.customers.select(lambda c: c.name).union(y.previous())
    )
    assert_type(kept, Recurrence[str])
    assert_type(kept.previous(), Relation[str])
    assert_type(kept.materialize().snapshot(), list[str])


def views_of_joins() -> None:
    shop = Shop()
    assert_type(shop.both.materialize().first(), tuple[Order, Customer] | None)
    shop.customers.add(Customer("ann", "Bonn"))
    shop.orders.add(Order(3, "ann", 2.5))
    assert_type(shop.both.materialize().value, tuple[Order, Customer])
    assert_type(shop.orders.materialize().value, Order)
    assert_type(shop.orders.aggregate(Count()).materialize().value, int)
    assert_type(shop.orders.aggregate(Count(), Max("id")).materialize().value, tuple[int, Any])
    by_town = shop.both.group_by("town").aggregate(Count()).materialize()
    assert_type(by_town.value, tuple[Any, int])


def deltas() -> None:
    shop = Shop()
    seen: list[object] = []

    def of_order(delta: Delta[Order]) -> None:
        assert_type(delta.added, tuple[Order, ...])
        assert_type(delta.removed, tuple[Order, ...])
        assert_type(delta.updated, tuple[tuple[Order, Order], ...])
        assert_type(delta.items(), tuple[tuple[Order, int], ...])
        seen.extend(row.total for row in delta.added)

    def of_pair(delta: Delta[tuple[Order, Customer]]) -> None:
        seen.extend(customer.town for _, customer in delta.added)

    class Log:
        def added(self, row: Order) -> None:
            seen.append(row.id)

    class Replaced:
        def updated(self, old: Order, new: Order) -> None:
            seen.append(new.id - old.id)

    watching = shop.orders.subscribe(of_order)
    assert_type(watching, Subscription[Order])
    pairs = shop.both.subscribe(of_pair, snapshot=True)
    assert_type(pairs, Subscription[tuple[Order, Customer]])
    view = shop.both.select(lambda o, c: c.town).materialize()
    towns = view.subscribe(lambda delta: seen.extend(t.upper() for t in delta.added))
    assert_type(towns, Subscription[str])
    by_town = shop.both.group_by(lambda o, c: c.town).aggregate(Count()).materialize()
    groups = by_town.subscribe(lambda d: seen.extend(old[1] < new[1] for old, new in d.updated))
    assert_type(groups, Subscription[tuple[str, int]])
    dropping = shop.both.group_by(lambda o, c: c.town).aggregate(Count())
    assert_type(dropping.materialize(on_error="drop"), GroupedView[str, int])
    assert_type(dropping.materialize(on_error="drop").errors, View[RowError])
    assert_type(shop.orders.observe(Log()), Subscription[Order])
    assert_type(shop.orders.materialize().observe(Replaced()), Subscription[Order])
    shop.customers.add(Customer("ann", "Bonn"))
    shop.orders.add(Order(3, "ann", 2.5))
    assert seen == [2.5, "Bonn", "BONN"]
    asyncio.run(changes(shop))


async def changes(shop: Shop) -> None:
    with shop.orders.changes(snapshot=True) as orders, shop.both.changes(latest=True) as pairs:
        assert_type(orders, Changes[Order])
        assert_type(pairs, Changes[tuple[Order, Customer]])
        delta = await anext(orders)
        assert_type(delta, Delta[Order])
        assert_type(delta.added, tuple[Order, ...])


def aggregates() -> None:
    orders = Shop().orders
    assert_type(orders.aggregate(Count()), Relation[int])
    assert_type(orders.aggregate(Sum(lambda o: o.id)), Relation[int])
    assert_type(orders.aggregate(Sum(lambda o: o.total)), Relation[float])
    assert_type(orders.aggregate(Sum(lambda o: o.price)), Relation[Decimal])
    assert_type(orders.aggregate(Sum(lambda o: o.share)), Relation[Fraction])
    assert_type(orders.aggregate(Sum(lambda o: o.paid)), Relation[int])
    assert_type(orders.aggregate(Sum(lambda o: o.discount or 0)), Relation[float])
    assert_type(orders.aggregate(Sum(lambda o: o.discount, skip_none=True)), Relation[float])
    assert_type(orders.aggregate(Sum("total")), Relation[Any])
    assert_type(
        orders.aggregate(Avg(lambda o: o.id), Avg(lambda o: o.price)), Relation[float, Decimal]
    )
    assert_type(orders.aggregate(Avg(lambda o: o.discount, skip_none=True)), Relation[float])
    assert_type(orders.aggregate(Min(lambda o: o.day), Max(lambda o: o.id)), Relation[date, int])
    assert_type(orders.aggregate(CountDistinct(lambda o: o.customer)), Relation[int])
    assert_type(orders.aggregate(Collect(lambda o: o.customer)), Relation[Multiset[str]])
    everything = orders.aggregate(
        Count(),
        Sum(lambda o: o.id),
        Avg(lambda o: o.total),
        Min(lambda o: o.customer),
        Max(lambda o: o.price),
        CountDistinct(lambda o: o.day),
        Collect(lambda o: o.paid),
        Max(lambda o: (o.total, o.id)),
    )
    assert_type(
        everything,
        Relation[int, int, float, str, Decimal, int, Multiset[bool], tuple[float, int]],
    )


def groups() -> None:
    shop = Shop()
    by_town = shop.both.group_by(lambda o, c: c.town)
    one = by_town.aggregate(Sum(lambda o, c: o.total))
    assert_type(one, GroupedRelation[str, float])
    assert_type(one.materialize(), GroupedView[str, float])
    assert_type(one.materialize().get("Bonn"), float | None)
    assert_type(one.materialize().get("Bonn", 0), float | int)
    four = by_town.aggregate(
        Count(), Sum(lambda o, c: o.discount or 0), Min(lambda o, c: o.id), Avg(lambda o, c: o.id)
    )
    assert_type(four, GroupedRelation[str, int, float, int, float])
    view = four.where(lambda town, n, total, least, mean: n > 3).materialize()
    assert_type(view, GroupedView[str, int, float, int, float])
    assert_type(view.get("Bonn"), tuple[int, float, int, float] | None)
    assert_type(view.get("Bonn", ()), tuple[int, float, int, float] | tuple[()])
    ordered = four.order_by(lambda town, n, total, least, mean: (total, town)).limit(3)
    assert_type(list(ordered.materialize()), list[tuple[str, int, float, int, float]])
    eight = shop.orders.group_by(lambda o: (o.customer, o.day)).aggregate(
        Count(),
        Sum(lambda o: o.id),
        Avg(lambda o: o.total),
        Min(lambda o: o.customer),
        Max(lambda o: o.price),
        CountDistinct(lambda o: o.day),
        Sum(lambda o: o.share),
        Max(lambda o: o.paid),
    )
    for row in eight.materialize():
        assert_type(row[8], bool)
        assert_type(row[5], Decimal)
    assert_type(four.materialize().keys(), list[str])


def per_group() -> None:
    shop = Shop()
    by_customer = shop.orders.group_by(lambda o: o.customer)
    largest = by_customer.reduce(lambda name, rows: [max(o.total for o in rows)])
    assert_type(largest, Relation[str, float])
    assert_type(largest.where(lambda name, total: total > 3), Relation[str, float])
    by_town = shop.both.group_by(lambda o, c: c.town)
    towns = by_town.reduce(lambda town, rows: ((o.id, c.name) for o, c in rows))
    assert_type(towns, Relation[str, tuple[int, str]])
    assert_type(by_customer.top(3, by="total"), Relation[Order])
    assert_type(by_customer.top(3, lambda o: o.total, descending=False), Relation[Order])
    assert_type(by_customer.top(3, by=[desc("total"), asc("id")]), Relation[Order])
    assert_type(by_customer.top(3, lambda o: o.discount, nulls="last"), Relation[Order])
    assert_type(by_customer.first(by=desc(lambda o: o.id)), Relation[Order])
    assert_type(by_town.last(by=lambda o, c: (o.total, c.name)), Relation[Order, Customer])
    dear = by_customer.each(lambda g: g.where(lambda o: o.total > 2))
    assert_type(dear, Relation[str, Order])
    counts = by_town.each(lambda g: g.aggregate(Count(), Sum(lambda o, c: o.total)))
    assert_type(counts, Relation[str, int, float])
    with_town = by_customer.each(lambda g: g.join(shop.customers, on=lambda o, c: o.id > 1))
    assert_type(with_town, Relation[str, Order, Customer])
    shop.orders.add(Order(3, "ann", 2.5))
    assert list(largest.materialize()) == [("ann", 2.5)]


def own_aggregates() -> None:
    words = Shop().words

    def longer(a: str, b: str) -> str:
        return max(a, b, key=len)

    def plus(state: int, word: str) -> int:
        return state + len(word)

    def minus(state: int, word: str) -> int:
        return state - len(word)

    assert_type(words.aggregate(Monoid("", longer)), Relation[str])
    assert_type(words.aggregate(Monoid("", longer, len)), Relation[int])
    assert_type(words.aggregate(Median(lambda w: len(w)), Variance(len)), Relation[float, float])
    assert_type(words.aggregate(Quantile(lambda w: w, 0.9, interpolation="lower")), Relation[str])
    assert_type(words.aggregate(ArgMin(lambda w: w, by=lambda w: len(w))), Relation[str])
    assert_type(words.aggregate(LastBy(len, of=lambda w: len(w))), Relation[int])
    assert_type(words.aggregate(MostCommon(len), BoolOr(len)), Relation[int, bool])
    common = words.aggregate(MostCommon(lambda w: len(w), 3))
    assert_type(common, Relation[tuple[tuple[int, int], ...]])
    assert_type(words.aggregate(StringJoin(lambda w: w, order=lambda w: len(w))), Relation[str])
    assert_type(words.aggregate(ApproxCountDistinct(lambda w: w)), Relation[int])
    by_length = words.group_by(len)
    assert_type(by_length.aggregate(Aggregate(0, plus, minus)), GroupedRelation[int, int])
    halves = by_length.aggregate(Aggregate(0, plus, minus, lambda n: n / 2))
    assert_type(halves, GroupedRelation[int, float])


def names() -> None:
    shop = Shop()
    by_town = shop.both.group_by(lambda o, c: c.town)
    towns = by_town.aggregate(orders=Count(), total=Sum("total"), as_=Town)
    assert_type(towns, NamedGroups[str, Town])
    view = towns.where(lambda t: t.orders > 0).materialize()
    assert_type(view, NamedGroupsView[str, Town])
    assert_type(list(view), list[Town])
    assert_type(view.get("Bonn"), Town | None)
    assert_type(towns.select(lambda t: t.total), Relation[float])
    assert_type(towns.order_by(lambda t: t.total).limit(3), OrderedRelation[Town])
    watching = view.subscribe(lambda delta: None)
    assert_type(watching, Subscription[Town])
    shop.customers.add(Customer("ann", "Bonn"))
    shop.orders.add(Order(3, "ann", 2.5))
    assert_type(view["Bonn"], Town)
    assert view["Bonn"] == Town("Bonn", 1, 2.5) and view.keys() == ["Bonn"]
    totals = shop.orders.aggregate(orders=Count(), total=Sum(lambda o: o.total), as_=Totals)
    assert_type(totals, Relation[Totals])
    assert list(totals.materialize()) == [Totals(1, 2.5)]


def names_without_a_class() -> None:
    shop = Shop()
    shop.customers.add(Customer("ann", "Bonn"))
    shop.orders.add(Order(3, "ann", 2.5))
    by_town = shop.both.group_by("town").aggregate(orders=Count(), total=Sum("total"))
    view = by_town.where(lambda row: row.orders > 0).materialize()
    assert view["Bonn"].orders == 1 and [row.total for row in view] == [2.5]
    assert [row.total for row in by_town.order_by("total").head(3)] == [2.5]
    total = shop.orders.aggregate(orders=Count(), total=Sum(lambda o: o.total)).materialize()
    assert total.value.total == 2.5
    assert list(
        by_town.join(by_town, on="town").select(lambda a, b: a.total + b.total).head(9)
    ) == [5.0]


def orders_of_rows() -> None:
    orders = Shop().orders
    ordered = orders.order_by(lambda o: o.total)
    assert_type(ordered, OrderedRelation[Order])
    assert_type(ordered.materialize(), OrderedView[Order])
    assert_type(ordered.materialize()[:3], list[Order])
    assert_type(orders.order_by(lambda o: o.discount, nulls="last"), OrderedRelation[Order])
    assert_type(orders.order_by("discount", descending=True), OrderedRelation[Order])
    assert_type(
        orders.order_by(desc(lambda o: o.total), asc(lambda o: o.id)), OrderedRelation[Order]
    )
    orders.order_by(desc(lambda o: o.discount, nulls="first"), lambda o: o.id)
    orders.order_by(asc(lambda o: o.discount), desc("total"), nulls="last")
    orders.order_by(lambda o: (o.customer, o.day), lambda o: -o.total, descending=True)


def recursion() -> None:
    db = Database()
    edges = db.table(Customer)
    reach = fixpoint(
        lambda reach: edges.union(
            reach.join(edges, on=lambda a, b: a.town == b.name).select(
                lambda a, b: Customer(a.name, b.town)
            )
        )
    )
    assert_type(reach, Relation[Customer])
    assert_type(reach.materialize(), View[Customer])
    odd, even = fixpoint(
        lambda odd, even: (
            edges.union(even.select(lambda c: Customer(c.town, c.name))),
            odd.where(lambda c: c.name != c.town),
        )
    )
    assert_type(odd, Relation[Customer])
    assert_type(even.materialize(), View[Customer])
    program = db.datalog(".decl big(n: number) .output big  big(n) :- n = 3.")
    assert_type(program["big"], Relation[Any])
    assert_type(list(program["big"].materialize()), list[Any])


class Orders:
    name = "orders"

    def batches(self, since: Any, stop: threading.Event) -> Iterator[Batch[Order]]:
        yield Batch([Order(9, "eve", 1.5)], deletes=[1], token=1)


def words_of(since: int | None, stop: threading.Event) -> Iterator[Batch[str]]:
    yield Batch(["or"], token=(since or 0) + 1)


def rows_from_elsewhere() -> None:
    shop = Shop()
    orders = shop.db.ingest(Orders(), shop.orders)
    assert_type(orders, Ingestion[Order])
    assert_type(orders.origins.get("x"), tuple[Order, ...] | None)
    orders.wait()
    assert_type(shop.db.ingest(words_of, into=shop.words), Ingestion[str])
    assert_type(shop.db.ingest(from_rows(["not"]), shop.words), Ingestion[str])
    pushed = shop.db.ingest(None, shop.words, name="pushed", on_error="drop")
    assert_type(pushed, Ingestion[str])
    pushed.take(Batch(origins={"a": ["to", "be"]}, token={"offset": 2}))
    assert_type(pushed.errors, View[RowError])
    assert_type(pushed.lag, Lag)
    both = shop.db.ingest(None, {Order: shop.orders, str: shop.words}, name="both")
    both.take(Batch(["or", Order(7, "ann", 1.5)], deletes={Order: [9]}))
    source: Source[Order] = Orders()
    assert_type(shop.db.ingest(source, shop.orders, name="again"), Ingestion[Order])
    watched = shop.db.watch("nowhere/*.jsonl", Order, name="watched", key="id", start=False)
    assert_type(watched, WatchedTable[Order])
    assert_type(watched.source, Ingestion[Order])
    assert_type(watched.where(lambda o: o.total > 1), Relation[Order])
    texts = files("nowhere/*.txt", reader=lambda path: path.read_text().split())
    assert_type(shop.db.ingest(texts, shop.words, start=False), Ingestion[str])


@tracked
class Player:
    id: int
    name: str
    hp: int = 10


@tracked(undo=False, exclude=["socket"])
@dataclass
class Guest:
    id: int
    socket: object = None


def objects_that_change() -> None:
    db = Database()
    players = db.table(Player, key=lambda p: p.id)
    assert_type(players, Table[Player, int])
    ann = Player(1, "ann")
    players.add(ann)
    ann.hp -= 3
    assert_type(ann.hp, int)
    assert_type(of(players[1]), Player)
    assert_type(players.where(lambda p: p.hp > 3).materialize(), View[Player])
    guest = Guest(2, socket=object())
    db.table(Guest).add(guest)
    db.touch(guest)
    assert_type(db.check_silent(), list[Silent])


PROGRAMS: list[Callable[[], None]] = [
    *(tables, joins, deltas, aggregates, groups, own_aggregates, names, names_without_a_class),
    *(families, orders_of_rows, recursion, recurrences, rows_from_elsewhere, objects_that_change),
]
