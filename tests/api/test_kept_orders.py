"""Orders are kept: queries over ordered rows keep their order, or are refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cmp_to_key
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, PlanError, asc, check, desc, fixpoint, live
from reactive.api.comprehending import plain


@dataclass(frozen=True)
class Item:
    id: int
    group: int
    value: int


def table() -> tuple[Database, Any]:
    db = Database()
    return db, db.table(Item, name="items", key="id")


CHAINS: dict[str, tuple[Callable[[Any], Any], Callable[[Item], Any]]] = {
    "select": (lambda o: o.select(lambda i: i.id), lambda i: i.id),
    "select_twice": (
        lambda o: o.select(lambda i: (i.id, i.group)).select(lambda p: p[0]),
        lambda i: i.id,
    ),
    "where": (lambda o: o.where(lambda i: i.group != 9), lambda i: i),
    "where_of_select": (lambda o: o.select(lambda i: i.id).where(lambda n: n >= 0), lambda i: i.id),
    "extend": (lambda o: o.extend(lambda i: i.group), lambda i: (i, i.group)),
    "extend_of_bind": (
        lambda o: o.bind(n=lambda i: i.id).extend(double=lambda n: 2 * n),
        lambda i: (i.id, 2 * i.id),
    ),
    "bind": (lambda o: o.bind(lambda i: i.id, lambda i: i.group), lambda i: (i.id, i.group)),
    "distinct": (lambda o: o.distinct(), lambda i: i),
}


@pytest.mark.parametrize("limit", [None, 4])
@pytest.mark.parametrize("name", list(CHAINS))
def test_a_chain_over_an_order_stands_in_it(name: str, limit: int | None) -> None:
    build, row = CHAINS[name]
    _, items = table()
    ordered = items.order_by("group", desc("value"))
    ordered = ordered if limit is None else ordered.limit(limit)
    view = build(ordered).materialize()
    rng = random.Random(3)
    for n in range(60):
        items.upsert(Item(rng.randrange(12), rng.randrange(4), 100 * n))
        wanted = sorted(items, key=lambda i: (i.group, -i.value))[:limit]
        assert list(view) == [row(i) for i in wanted]
        view.verify()


def test_tied_rows_stand_as_the_rows_that_were_ordered() -> None:
    pairs = Database().table(tuple[int, int], name="pairs")
    ordered = pairs.order_by(lambda p: p[0], descending=True)
    rows, shown = ordered.materialize(), ordered.select(lambda p: -p[1]).materialize()
    pairs.add_all([(1, 5), (2, 1), (1, 3), (2, 9), (1, 4)])
    assert [-p[1] for p in rows] == list(shown) == [-1, -9, -3, -4, -5]


def test_a_limit_after_a_select_takes_the_first_rows() -> None:
    _, items = table()
    view = items.order_by("value").select(lambda i: i.id).limit(2).materialize()
    items.add_all([Item(1, 0, 3), Item(2, 0, 1), Item(3, 0, 2)])
    assert list(view) == [2, 3]


@pytest.mark.parametrize(
    "lose",
    [
        lambda o: o.select(lambda i: i.group).distinct(),
        lambda o: o.select_many(lambda i: (i.id, i.group)),
        lambda o: o.unnest(lambda i: (i.id,)),
        lambda o: o.join(o.where(lambda i: i.id), "id"),
        lambda o: o.union_all(o),
        lambda o: o.negate(),
    ],
)
def test_what_loses_an_order_is_refused(lose: Callable[[Any], Any]) -> None:
    _, items = table()
    with pytest.raises(PlanError, match="cannot keep the order"):
        lose(items.order_by("value"))
    lose(items.order_by("value").limit(3))  # its rows, as a bag


def test_a_view_of_an_order_is_read_in_it() -> None:
    _, items = table()
    ordered = items.order_by("value").materialize()
    view = ordered.where(lambda i: i.group).select(lambda i: i.id).materialize()
    items.add_all([Item(1, 1, 3), Item(2, 0, 1), Item(3, 1, 2)])
    assert list(view) == [3, 1]
    assert ordered.aggregate(Count()).materialize().value == 3


def test_orders_inside_and_around_nests_stay() -> None:
    db, items = table()
    groups = db.table(int, name="groups")
    nested = groups.nest(
        all=lambda g: items.where(lambda i: i.group == g).order_by("value").select(lambda i: i.id),
        top=lambda g: items.order_by("value").limit(2).where(lambda i: i.group == g),
    )
    ordered = nested.order_by(lambda g, all, top: g, descending=True)
    view = ordered.where(lambda g, all, top: g < 3).materialize()
    numbers = ordered.select(lambda g, all, top: (g, len(all))).materialize()
    groups.add_all([0, 1, 2, 3])
    items.add_all([Item(1, 1, 3), Item(2, 1, 1), Item(3, 0, 2)])
    assert [row[0] for row in view] == [2, 1, 0]
    assert view[1].all == (2, 1) and view[1].top == (Item(2, 1, 1),)
    assert list(numbers) == [(3, 0), (2, 0), (1, 2), (0, 1)]
    with pytest.raises(PlanError, match="cannot nest in the order"):
        items.order_by("value").select(lambda i: i.id).nest(g=lambda n: groups)


def texts(db: Database, items: Any, groups: Any) -> dict[str, Any]:
    ordered = items.order_by("group", desc("value"))
    top = items.order_by("value").limit(3)
    return {
        "sorted": db.query(lambda: [i.id for i in sorted(items, key=lambda i: i.value)]),
        "descending": db.query(
            lambda: [i.id for i in sorted(items, key=lambda i: i.group, reverse=True)]
        ),
        "if": db.query(lambda: [i.id for i in sorted(items, key=lambda i: i.value) if i.group]),
        "window": db.query(lambda: [-i.id for i in sorted(items, key=lambda i: i.value)[1:4]]),
        "ordered": db.query(lambda: [i.id for i in ordered if i.id % 2]),
        "top": db.query(lambda: [i.id for i in top]),
        "itself": db.query(lambda: ordered),
        "twice": db.query(
            lambda: [n + 1 for n in [i.id for i in sorted(items, key=lambda i: i.value)]]
        ),
        "list": db.query(lambda: tuple([i.id for i in ordered])),
        "exists": db.query(
            lambda: [i.id for i in sorted(items, key=lambda i: i.value) if i.group in groups]
        ),
        "count": db.query(
            lambda: [
                (i.id, sum(1 for j in items if j.value < i.value))
                for i in sorted(items, key=lambda i: i.group)
            ]
        ),
        "product": db.query(
            lambda: [(i.id, g) for i in sorted(items, key=lambda i: i.value) for g in groups]
        ),
        "inside": db.query(
            lambda: [
                (g, [i.id for i in sorted(items, key=lambda i: i.value) if i.group == g])
                for g in groups
            ]
        ),
        "live": live(i.id for i in ordered),
    }


TEXTS = (
    *("sorted", "descending", "if", "window", "ordered", "top", "itself", "twice", "list"),
    *("exists", "count", "product", "inside", "live"),
)


@pytest.mark.long
@pytest.mark.parametrize("name", TEXTS)
def test_comprehensions_stand_in_the_order_of_their_rows(name: str) -> None:
    db, items = table()
    groups = db.table(int, name="groups")
    query = texts(db, items, groups)[name]
    view = query.materialize()
    rng = random.Random(4)
    groups.add_all([0, 2])
    for n in range(40):
        items.upsert(Item(rng.randrange(12), rng.randrange(4), rng.randrange(9) + 10 * n))
        check(view)
        view.verify()
    if name not in ("product", "inside", "descending", "count"):  # without ties
        assert list(view) == list(query())


@pytest.mark.parametrize(
    "query",
    [
        lambda o, g: lambda: [i.id for i in o] + [1],
        lambda o, g: lambda: [(a.id, b) for a in o for b in sorted(g)],
        lambda o, g: lambda: [(a.id, b) for a in sorted(g)[:1] for b in o],
    ],
)
def test_texts_that_lose_an_order_are_refused(query: Any) -> None:
    db, items = table()
    groups = db.table(int, name="groups")
    with pytest.raises(PlanError, match="lose the order"):
        db.query(query(items.order_by("group", "value"), groups))


def sequences(items: Any) -> dict[str, Any]:
    """Return texts whose rows have one order in Python, for any order of the items.

    The items must have distinct values.
    """

    def by_value(item: Item) -> int:
        return item.value

    shown = items.order_by("value").materialize()
    return {
        "last": lambda: sorted(items, key=by_value)[-3:],
        "all but the last": lambda: [i.id for i in sorted(items, key=by_value)[:-2]],
        "between": lambda: [i.id for i in sorted(items, key=by_value)[-4:-1]],
        "but both ends": lambda: [i.id for i in sorted(items, key=by_value)[1:-1]],
        "reversed": lambda: [i.id for i in sorted(items, key=by_value)[::-1]],
        "none": lambda: [i.id for i in sorted(items, key=by_value)[3:1]],
        "none from behind": lambda: [i.id for i in sorted(items, key=by_value)[-1:-3]],
        "window of a window": lambda: [i.id for i in sorted(items, key=by_value)[1:5][:2]],
        "last of a window": lambda: sorted(items, key=by_value)[:4][-2:],
        "reversed window": lambda: sorted(items, key=by_value)[1:4][::-1],
        "every other": lambda: sorted(items, key=by_value)[::2],
        "every other, read": lambda: [i.id for i in sorted(items, key=by_value)[1::2] if i.id],
        "counted": lambda: [i.id for i in sorted(items, key=by_value)[: len(items) // 2]],
        "counted from": lambda: [i.id for i in sorted(items, key=by_value)[len(items) // 2 :]],
        "stable": lambda: sorted(sorted(items, key=by_value), key=lambda i: i.group),
        "stable, backwards": lambda: [
            i.id
            for i in sorted(
                sorted(items, key=by_value, reverse=True), key=lambda i: i.group, reverse=True
            )
        ],
        "two directions": lambda: [
            i.id for i in sorted(sorted(items, key=by_value), key=lambda i: i.group, reverse=True)
        ],
        "stable window": lambda: sorted(sorted(items, key=by_value), key=lambda i: i.group)[1:4],
        "stable, of a window": lambda: sorted(
            sorted(items, key=by_value)[:4], key=lambda i: -i.group
        ),
        "stable, over rows": lambda: [
            n
            for n, _ in sorted(
                [(i.id, i.group) for i in sorted(items, key=by_value)], key=lambda p: p[1]
            )
        ],
        "stable, by a query": lambda: sorted(
            sorted(items, key=by_value),
            key=lambda i: len([j for j in items if j.group == i.group]),
        ),
        "first of the best": lambda: [
            (i.id, max(sorted(items, key=by_value), key=lambda j: j.group))
            for i in sorted(items, key=by_value)
        ],
        "view": lambda: [i.id for i in shown if i.group],
        "view, sorted": lambda: [i.id for i in sorted(shown, key=lambda i: i.group)],
        "inside": lambda: [
            (i.id, [j.id for j in sorted(items, key=by_value)[: i.group]])
            for i in sorted(items, key=by_value)
        ],
        "inside, by two": lambda: [
            (i.id, [j.id for j in sorted(sorted(items, key=by_value), key=lambda j: j.group)])
            for i in sorted(items, key=by_value)
        ],
    }


@pytest.mark.parametrize("name", list(sequences(table()[1])))
def test_sequences_are_those_of_python(name: str) -> None:
    db, items = table()
    items.add(Item(0, 0, -1))
    text = sequences(items)[name]
    query = db.query(text)
    view = query.materialize()
    rng = random.Random(name)
    for n in range(25):
        items.upsert(Item(rng.randrange(9), rng.randrange(3), rng.randrange(2, 9) + 10 * n))
        if len(items) > 2 and rng.random() < 0.3:
            items.remove(rng.choice(list(items)))
        rows = list(items)
        rng.shuffle(rows)
        given = sorted(rows, key=lambda i: i.value) if "view" in name else rows
        names = {"shown" if "view" in name else "items": given}
        wanted = [plain(each) for each in query.on(**names)] if rows else []
        assert [plain(each) for each in view] == wanted
        check(view)
    view.verify()


def test_a_value_that_is_sorted_in_two_directions_is_refused() -> None:
    db, items = table()
    ordered = items.order_by("group", desc("value"))
    with pytest.raises(PlanError, match="two directions"):
        db.query(lambda: [(i.id, [j.id for j in ordered]) for i in items])


def test_check_sees_a_lost_order(monkeypatch: pytest.MonkeyPatch) -> None:
    db, items = table()
    view = db.query(lambda: [i.id for i in sorted(items, key=lambda i: i.value)]).materialize()
    items.add_all([Item(1, 0, 3), Item(2, 0, 1), Item(3, 0, 1)])
    rows = list(view)
    monkeypatch.setattr(type(view), "__iter__", lambda self: iter([rows[1], rows[0], rows[2]]))
    check(view)  # these two are tied
    monkeypatch.setattr(type(view), "__iter__", lambda self: iter(rows[::-1]))
    with pytest.raises(Exception, match="is not what its text gives"):
        check(view)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", ["plain", "select", "where", "extend", "limit"])
def test_an_order_of_an_order_is_stable_as_that_of_sorted(way: str, seed: int) -> None:
    drawn = Random(seed)
    db = Database()
    table = db.table(tuple[int, int, int], name="t")
    first: Any = table.order_by(asc(lambda r: r[1]), desc(lambda r: r[2]))
    match way:
        case "plain":
            again = first.order_by(lambda r: r[0], descending=bool(seed % 2))
        case "select":
            again = first.select(lambda r: r[0]).order_by(
                lambda n: n % 2, descending=bool(seed % 2)
            )
        case "where":
            again = first.where(lambda r: r[0] > 0).order_by(
                lambda r: r[0], descending=bool(seed % 2)
            )
        case "extend":
            again = (
                first.extend(lambda r: r[0] * 2)
                .order_by(lambda r, n: n, descending=bool(seed % 2))
                .select(lambda r, n: r)
            )
        case _:
            again = first.limit(5).order_by(lambda r: r[0], descending=bool(seed % 2))
    view = again.materialize()
    rows: list[tuple[int, int, int]] = []
    for _ in range(30):
        if rows and drawn.random() < 0.3:
            table.remove(rows.pop(drawn.randrange(len(rows))))
        else:
            rows.append(tuple(drawn.randrange(4) for _ in range(3)))  # type: ignore[arg-type]
            table.add(rows[-1])
        before = sorted(sorted(rows), key=lambda r: (r[1], -r[2]))
        shown: list[Any] = before[:5] if way == "limit" else before
        shown = [r for r in shown if way != "where" or r[0] > 0]
        if way == "select":
            shown = [r[0] for r in shown]
        key: Any = (lambda n: n % 2) if way == "select" else (lambda r: r[0])
        assert list(view) == sorted(shown, key=key, reverse=bool(seed % 2))


def test_three_orders_stand_by_the_last_first() -> None:
    db = Database()
    table = db.table(tuple[int, int, int], name="t")
    rows = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    table.add_all(rows)
    chain = table.order_by(lambda r: -r[2]).order_by(lambda r: -r[1]).order_by(lambda r: -r[0])
    assert list(chain.materialize()) == sorted(rows, reverse=True)


def test_a_key_made_by_cmp_to_key_is_refused() -> None:
    table: Any = Database().table(int, name="t")
    with pytest.raises(PlanError, match="cmp_to_key"):
        table.order_by(cmp_to_key(lambda a, b: 0))


def test_so_is_one_in_a_comprehension() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    key = cmp_to_key(lambda one, other: int(one) - int(other))  # type: ignore[call-overload]
    for query in (
        lambda: sorted(numbers, key=key),
        lambda: [-n for n in sorted(numbers, key=key)],
        lambda: [min(numbers, key=key) for _ in numbers],
    ):
        with pytest.raises(PlanError, match="cmp_to_key"):
            db.query(query)


def test_a_recursion_passes_an_order_that_chooses_no_row_of_it() -> None:
    """The first rows are of a table; that those of the step stand in an order is of no effect."""
    db = Database()
    pairs = db.table(tuple[int, int], name="pairs")
    first = pairs.order_by(lambda p: p[0]).limit(2).select(lambda p: (p[1], p[0]))
    found = fixpoint(lambda r: first.union(first.semi_join(r, on=lambda p, q: p[0] == q[1])))
    view = found.materialize()
    pairs.add_all([(1, 2), (0, 1), (5, 6)])
    assert sorted(view) == [(1, 0), (2, 1)]
    assert "order_by row1" not in str(pairs.union(first).explain())
    view.verify()
