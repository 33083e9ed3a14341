"""Groups without an aggregate: each key with the rows that have it, and groups of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Bag, Count, Database, Edit
from reactive.engine.collections.zset import canonical
from reactive.errors import PlanError


class Order(NamedTuple):
    town: Any
    day: int
    total: float


NAN = float("nan")
TOWNS = ("Bonn", None, NAN, 1, True)


def of_key(orders: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for order in orders:
        found.setdefault(canonical(key(order)), []).append(order)
    return found


def by_town(orders: list[Any]) -> dict[Any, list[Any]]:
    return of_key(orders, lambda o: o[0])


def by_day(orders: list[Any]) -> Bag[Any]:
    return Bag([(day, Bag(rows)) for day, rows in of_key(orders, lambda o: o[1]).items()])


def first_two(orders: list[Any]) -> tuple[Any, ...]:
    return tuple(sorted(orders, key=lambda o: o[1:])[:2])


Query = Callable[[Any], Any]
Expected = Callable[[list[Any]], Iterable[Any]]
FORMS: dict[str, tuple[Query, Expected]] = {
    "rows": (
        lambda towns: towns.rows(),
        lambda orders: [(town, Bag(rows)) for town, rows in by_town(orders).items()],
    ),
    "groups": (
        lambda towns: towns.rows(lambda rows: rows.group_by(lambda o: o[1]).rows()),
        lambda orders: [(town, by_day(rows)) for town, rows in by_town(orders).items()],
    ),
    "order": (
        lambda towns: towns.rows(
            lambda rows: rows.order_by(lambda o: o[1], lambda o: o[2]).limit(2)
        ),
        lambda orders: [(town, first_two(rows)) for town, rows in by_town(orders).items()],
    ),
    "where": (
        lambda towns: towns.rows(lambda rows: rows.where(lambda o: o[1] > 1)),
        lambda orders: [
            (town, Bag([o for o in rows if o[1] > 1])) for town, rows in by_town(orders).items()
        ],
    ),
    "count": (
        lambda towns: towns.rows(lambda rows: rows.aggregate(Count())),
        lambda orders: [(town, Bag([len(rows)])) for town, rows in by_town(orders).items()],
    ),
    "folds": (
        lambda towns: (
            towns.rows()
            .where(lambda town, rows: any(o[1] > 1 for o in rows))
            .select(lambda town, rows: (town, len(rows), sum(o[2] for o in rows)))
        ),
        lambda orders: [
            (town, len(rows), sum(o[2] for o in rows))
            for town, rows in by_town(orders).items()
            if any(o[1] > 1 for o in rows)
        ],
    ),
    "unnest": (
        lambda towns: (
            towns.rows().unnest(lambda town, rows: rows).select(lambda town, rows, o: (town, o[1]))
        ),
        lambda orders: [(canonical(o[0]), o[1]) for o in orders],
    ),
    "inner": (
        lambda towns: (
            towns.rows(lambda rows: rows.group_by(lambda o: o[1]).rows())
            .unnest(lambda town, days: days)
            .select(lambda town, days, day: (town, day[0], day[1]))
        ),
        lambda orders: [
            (town, day, rows)
            for town, of_town in by_town(orders).items()
            for day, rows in by_day(of_town)
        ],
    ),
}


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("kind", [Order, tuple])
@pytest.mark.parametrize("form", FORMS)
def test_groups_have_their_rows_inside(form: str, kind: Any, optimize: bool) -> None:
    random = Random(len(form))
    query, expected = FORMS[form]
    db = Database(optimize=optimize)
    orders = db.table(kind, name="orders")
    view = query(orders.group_by(lambda o: o[0])).materialize()
    for _ in range(12):
        with db.transaction():
            for _ in range(random.randrange(4)):
                if orders and random.random() < 0.4:
                    orders.remove(random.choice(list(orders)))
                else:
                    orders.add(Order(random.choice(TOWNS), random.randrange(4), 0.5))
        assert Bag(view) == Bag(expected(list(orders)))
    view.verify()
    orders.clear()
    assert not view


def test_rows_of_groups_read_by_key_by_name_and_change_by_path() -> None:
    orders = Database().table(Order, name="orders")
    view = orders.group_by("town").rows(lambda rows: rows.group_by("day").rows()).materialize()
    orders.add(Order("Bonn", 1, 2.5))
    assert view.columns == ["key", "rows"] and view["Bonn"].rows == Bag(
        [(1, Bag([Order("Bonn", 1, 2.5)]))]
    )
    assert view.to_python() == [
        {"key": "Bonn", "rows": [{"key": 1, "rows": [{"town": "Bonn", "day": 1, "total": 2.5}]}]}
    ]
    told: list[Any] = []
    with view.subscribe(lambda delta: told.extend(delta.edits)):
        orders.add(Order("Bonn", 1, 4.0))
    assert told == [Edit(None, Order("Bonn", 1, 4.0), 1, path=("Bonn", "rows", 1, "rows"))]


def test_a_fold_of_a_group_builds_no_bag() -> None:
    db = Database()
    for kind in (Order, tuple[str, int, float]):
        orders: Any = db.table(kind, name=str(kind))
        groups = orders.group_by(lambda o: o[0]).rows()
        made = groups.select(lambda key, rows: (key, len(rows), sum(o[1] for o in rows)))
        text = str(made.explain()).partition("optimized")[2]
        assert "join" not in text and "Collect" not in text and "aggregate" in text


def test_several_bindings_and_what_raises() -> None:
    db = Database()
    orders, days = db.table(Order, name="orders"), db.table(int, name="days")
    pairs = orders.join(days, on=lambda o, d: o.day == d)
    groups = pairs.group_by(lambda o, d: 6 // d).rows()
    view, sums = groups.materialize(), groups.select(lambda key, rows: (key, len(rows)))
    counts = sums.materialize()
    orders.add_all([Order("Bonn", 2, 1), Order("Bonn", 0, 1)])
    days.add(2)
    with pytest.raises(ZeroDivisionError):
        days.add(0)
    assert view[3].rows == Bag([(Order("Bonn", 2, 1), 2)]) and counts == [(3, 1)]
    for each in (view, counts):
        each.verify()


def test_what_gives_no_relation_is_refused() -> None:
    groups = Database().table(Order).group_by("town")
    with pytest.raises(PlanError, match="rows takes a callable that returns a relation"):
        groups.rows(lambda rows: 7)
