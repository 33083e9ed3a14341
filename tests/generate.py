"""Random queries and random histories, over small values so that rows meet often.

Every generated relation has one binding whose rows are pairs. Queries are built by the public
API from two tables, one a multiset and one keyed; self joins and diamonds come up by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Monoid,
    SortKey,
    Sum,
    Table,
    asc,
    desc,
)

Pair = tuple[Any, Any]
Rel = Any
NAN = math.nan

ROWS = st.tuples(st.sampled_from([0, 1, 2, 3]), st.sampled_from([1, 2, 3]))


def small(value: Any) -> Any:
    """Any result made into a value that tables hold; equal values into equal ones."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return value if value is None or value != value else 3
    if isinstance(value, int | float):
        return int(value * 10) % 4
    return len(value) % 4


def swapped(r: Pair) -> Pair:
    """The pair the other way round."""
    return r[1], r[0]


def first(r: Pair) -> Any:
    """Often None or NaN."""
    return r[0]


def n(value: Any) -> Any:
    """The value as a number."""
    return 0 if value is None else value


PREDICATES: list[Callable[[Pair], object]] = [
    lambda r: n(r[0]) > 1,
    lambda r: r[0] == r[1],
    lambda r: r[1] != 2,
    lambda r: False,
    lambda r: True,
]
PROJECTIONS: list[Callable[[Pair], Pair]] = [
    lambda r: (r[1], r[0]),
    lambda r: (n(r[0]) % 2, 1),
    lambda r: (r[0], 0),
    lambda r: (float("nan") if r[0] == 2 else r[0], r[1]),
    lambda r: (None if r[0] == 1 else r[0], r[1]),
]
KEYS: list[Callable[[Pair], Any]] = [
    lambda r: r[0],
    lambda r: r[1],
    lambda r: (r[0], r[1]),
    lambda r: float("nan") if r[1] == 2 else r[1],
    lambda r: None if r[0] == 0 else True,
]
MATCHES: list[Callable[[Pair, Pair], object]] = [
    lambda a, b: a[0] == b[1],
    lambda a, b: a != b,
    lambda a, b: n(a[0]) <= n(b[0]),
]
FANOUTS: list[Callable[[Pair], list[Pair]]] = [
    lambda r: [(r[0], r[1]), (r[0], 1)] if r[1] == 3 else [],
    lambda r: [r, r],
    lambda r: [],
]
ORDERS: list[Any] = [
    lambda r: n(r[0]),
    lambda r: 0,
    lambda r: (1, float("nan")) if r[1] == 1 else (1, n(r[1])),
    asc(swapped, nulls="last"),
    desc(first, nulls="first"),
]


def number(r: Pair) -> Any:
    """A number of any kind, from a row that may hold a NaN or None."""
    value = r[0]
    if value is None:
        return -0.1
    return [1, 0.1, 1e16, math.inf][value % 4] if value == value else value


AGGREGATES: list[Callable[[], Any]] = [
    Count,
    lambda: Sum(number),
    lambda: Avg(number),
    lambda: Min(lambda r: n(r[0])),
    lambda: Max(lambda r: n(r[0])),
    lambda: CountDistinct(lambda r: r[1]),
    lambda: Collect(lambda r: r[1]),
    lambda: Sum(lambda r: r[0], skip_none=True),
    lambda: Avg(lambda r: r[0], skip_none=True),
    lambda: Min(lambda r: r[0], skip_none=True),
    lambda: CountDistinct(lambda r: r[0], skip_none=True),
    lambda: Aggregate(0, lambda s, v: s + v, lambda s, v: s - v, of=lambda r: 1 + (r[1] == 1)),
    lambda: Monoid(frozenset(), frozenset.union, of=lambda r: frozenset([r[1]])),
]

REDUCERS: list[Callable[[Any, Any], Any]] = [
    lambda key, rows: [len(rows)],
    lambda key, rows: sorted(rows, key=repr)[:2],
    lambda key, rows: (r[1] for r in rows),
    lambda key, rows: [(key, r) for r, times in rows.items() if times > 1],
    lambda key, rows: [],
]


def one_to_one(draw: Any, r: Rel) -> Rel:
    """A relation made of one."""
    match draw(st.integers(0, 10)):
        case 0:
            return r.where(draw(st.sampled_from(PREDICATES)))
        case 1:
            return r.select(draw(st.sampled_from(PROJECTIONS)))
        case 2:
            return r.distinct()
        case 3:
            return r.select_many(draw(st.sampled_from(FANOUTS)))
        case 4:
            fan = draw(st.sampled_from(FANOUTS))
            return r.unnest(fan).where(lambda a, b: a[0] != b[1]).select(lambda a, b: (a[0], b[1]))
        case 5:
            return grouped(draw, r).select(lambda *row: (small(row[-1]), len(row)))
        case 6:
            made = r.aggregate(draw(st.sampled_from(AGGREGATES))())
            return made.select(lambda value: (0, small(value)))
        case 8:
            return topped(draw, r)
        case 9:
            each = r.group_by(draw(st.sampled_from(KEYS))).each(lambda g: one_to_one(draw, g))
            return each.select(lambda key, row: (small(row), small(n(key))))
        case 7:
            return reduced(draw, r).select(lambda key, row: (small(row), 1))
        case _:
            return ordered(draw, r).limit(draw(st.integers(0, 4)), draw(st.integers(0, 2)))


def ordered(draw: Any, r: Rel) -> Rel:
    """The rows in order of one or two keys, each in a direction of its own."""
    keys = draw(st.lists(st.sampled_from(ORDERS), min_size=1, max_size=2))
    return r.order_by(*[key if draw(st.booleans()) else turned(key) for key in keys])


def turned(key: Any) -> Any:
    """A key, greatest first; None stands where it did."""
    return SortKey(key.of, not key.descending, key.nulls) if isinstance(key, SortKey) else desc(key)


def two_to_one(draw: Any, r: Rel, s: Rel) -> Rel:
    """A relation made of two."""
    sets = ["union", "difference", "intersection", "union_all", "difference_all"]
    name = draw(
        st.sampled_from([*sets, "intersection_all", "join", "left_join", "right_join"])
        | st.sampled_from(["full_join", "semi_join", "anti_join", "join", "product"])
    )
    if name in sets or name == "intersection_all":
        return getattr(r, name)(s)
    if name == "product":
        return r.join(s).select(lambda a, b: (a[0], b[1]))
    joined = getattr(r, name)(s, **condition(draw))
    if name in ("semi_join", "anti_join"):
        return joined
    return joined.select(lambda a, b: (a and a[0], b and b[1]))


def condition(draw: Any) -> dict[str, Any]:
    """When two rows match: by key, by predicate, or by both."""
    kind = draw(st.sampled_from(["key", "on", "both"]))
    keys = {"left_key": draw(st.sampled_from(KEYS)), "right_key": draw(st.sampled_from(KEYS))}
    on = {"on": draw(st.sampled_from(MATCHES))}
    return {**(keys if kind != "on" else {}), **(on if kind != "key" else {})}


@st.composite
def queries(draw: Any, tables: Any, depth: int = 4) -> Rel:
    """A random query over the tables, of at most so many levels."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from(tables))
    if draw(st.booleans()):
        return one_to_one(draw, draw(queries(tables, depth - 1)))
    return two_to_one(draw, draw(queries(tables, depth - 1)), draw(queries(tables, depth - 1)))


def grouped(draw: Any, r: Rel) -> Rel:
    """Groups with one to three aggregates, as they are."""
    makers = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3))
    key = draw(st.sampled_from(KEYS))
    return r.group_by(key).aggregate(*(make() for make in makers))


def reduced(draw: Any, r: Rel) -> Rel:
    """What a callable makes of groups."""
    return r.group_by(draw(st.sampled_from(KEYS))).reduce(draw(st.sampled_from(REDUCERS)))


def topped(draw: Any, r: Rel) -> Rel:
    """The first or last few rows of groups."""
    groups = r.group_by(draw(st.sampled_from(KEYS)))
    by = draw(st.lists(st.sampled_from(ORDERS), min_size=1, max_size=2))
    match draw(st.integers(0, 3)):
        case 0:
            return groups.first(by)
        case 1:
            return groups.last(by)
        case _:
            return groups.top(draw(st.integers(0, 3)), by, descending=draw(st.booleans()))


@st.composite
def finals(draw: Any, tables: Any) -> Rel:
    """A random query, or one more step on top whose rows need not be pairs."""
    r = draw(queries(tables))
    match draw(st.integers(0, 5)):
        case 0:
            return grouped(draw, r)
        case 4:
            return topped(draw, r)
        case 3:
            return reduced(draw, r)
        case 1:
            return ordered(draw, r)
        case 2:
            name = draw(st.sampled_from(["join", "left_join", "right_join", "full_join"]))
            return getattr(r, name)(draw(queries(tables, 1)), **condition(draw))
        case _:
            return r


Change = tuple[str, str, Pair, int]
CHANGES = st.one_of(
    st.tuples(st.just("bag"), st.sampled_from(["add", "add", "remove"]), ROWS, st.integers(1, 2)),
    st.tuples(st.just("keyed"), st.sampled_from(["upsert", "delete"]), ROWS, st.just(1)),
)
HISTORIES = st.lists(st.lists(CHANGES, max_size=5), min_size=3, max_size=10)


def tables(db: Database) -> tuple[Table[Any], Table[Any]]:
    """The two tables that histories are about."""
    return db.table(tuple, name="bag"), db.table(tuple, name="keyed", key=lambda r: r[0])


def apply(bag: Table[Any], keyed: Table[Any], change: Change) -> None:
    """One change; a removal takes some row that is there, if there is any."""
    table, what, row, count = change
    if what == "remove":
        held = sorted(bag.items())
        if held:
            old, times = held[hash(row) % len(held)]
            bag.remove((old[0], old[1]), min(count, times))
    elif what == "delete":
        keys = sorted(r[0] for r in keyed)
        if keys:
            keyed.delete(keys[hash(row) % len(keys)])
    elif table == "keyed":
        keyed.upsert(row)
    else:
        bag.add((row[0], row[1]), count)
