"""One query per operator, with its result as a plain comprehension over the rows."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Any, TypeAlias

from reactive import (
    Aggregate,
    Avg,
    Collect,
    Count,
    CountDistinct,
    Max,
    Min,
    Monoid,
    Multiset,
    OrderedRelation,
    Relation,
    Sum,
    Table,
)
from reactive.api.aggregates import Aggregation
from tests.scenarios.rows import Item, is_high

Items: TypeAlias = list[Item]
AnyRelation: TypeAlias = Relation[*tuple[Any, ...]]
Build: TypeAlias = Callable[[Table[Item], Table[Item]], AnyRelation]
Oracle: TypeAlias = Callable[[Items, Items], Iterable[Any]]


@dataclass(frozen=True)
class Query:
    """A query over two tables (or over the left one only), and its oracle.

    The oracle returns each copy of each row; in order, if the query is `ordered`.
    """

    name: str
    build: Build
    oracle: Oracle
    binary: bool = False
    ordered: bool = False


def unary(
    name: str, build: Callable[[Any], Any], oracle: Callable[[Items], Iterable[Any]]
) -> Query:
    return Query(name, lambda left, _: build(left), lambda rows, _: oracle(rows))


def ordered(
    name: str, build: Callable[[Any], Any], oracle: Callable[[Items], Iterable[Any]]
) -> Query:
    return Query(name, lambda left, _: build(left), lambda rows, _: oracle(rows), ordered=True)


def binary(name: str, build: Callable[[Any, Any], Any], oracle: Oracle) -> Query:
    return Query(name, build, oracle, binary=True)


def group(item: Item) -> str:
    return item.group


def value(item: Item) -> int:
    return item.value


def digits(item: Item) -> list[int]:
    """Elements to unnest: none for A's neighbour D, one of them twice."""
    return [item.value % 2, item.value % 2, *range(item.value % 3)]


LINEAR = (
    unary("table", lambda t: t, lambda rows: rows),
    unary("where", lambda t: t.where(is_high), lambda rows: filter(is_high, rows)),
    unary("select", lambda t: t.select(group), lambda rows: map(group, rows)),
    unary(
        "select_of_where",
        lambda t: t.where(is_high).select(value),
        lambda rows: [r.value for r in rows if r.value > 3],
    ),
    unary(
        "select_many",
        lambda t: t.select_many(digits),
        lambda rows: [d for r in rows for d in digits(r)],
    ),
    unary(
        "unnest",
        lambda t: t.unnest(digits).where(lambda item, digit: digit > 0),
        lambda rows: [(r, d) for r in rows for d in digits(r) if d > 0],
    ),
    unary("distinct", lambda t: t.distinct(), set),
    unary(
        "distinct_of_select",
        lambda t: t.select(group).distinct(),
        lambda rows: {r.group for r in rows},
    ),
)


# Aggregates: each by group, and of all rows.


def _longest(left: str, right: str) -> str:
    return max(left, right)


AGGREGATES: tuple[tuple[str, Callable[[], Aggregation[Item, Any]], Callable[[Items], Any]], ...] = (
    ("count", Count, len),
    ("sum", lambda: Sum(value), lambda rows: sum(map(value, rows))),
    (
        "sum_of_floats",
        lambda: Sum(lambda r: r.value / 8),
        lambda rows: sum(r.value / 8 for r in rows),
    ),
    ("avg", lambda: Avg(value), lambda rows: fmean(map(value, rows)) if rows else None),
    ("min", lambda: Min(value), lambda rows: min(map(value, rows), default=None)),
    ("max", lambda: Max(value), lambda rows: max(map(value, rows), default=None)),
    (
        "count_distinct",
        lambda: CountDistinct(lambda r: r.value % 3),
        lambda rows: len({r.value % 3 for r in rows}),
    ),
    ("collect", lambda: Collect(value), lambda rows: Multiset(Counter(map(value, rows)))),
    (
        "aggregate",
        lambda: Aggregate(0, operator.xor, operator.xor, of=value),
        lambda rows: _folded(operator.xor, 0, map(value, rows)),
    ),
    (
        "monoid",
        lambda: Monoid("", _longest, len, of=lambda r: "-" * r.value),
        lambda rows: max(map(value, rows), default=0),
    ),
)


def _folded(combine: Callable[[Any, Any], Any], start: Any, values: Iterable[Any]) -> Any:
    for each in values:
        start = combine(start, each)
    return start


def _groups(rows: Items) -> dict[str, Items]:
    return {name: [r for r in rows if r.group == name] for name in {r.group for r in rows}}


def _by_group(name: str, aggregate: Callable[[], Any], of: Callable[[Items], Any]) -> Query:
    return unary(
        f"{name}_by_group",
        lambda t: t.group_by(group).aggregate(aggregate()),
        lambda rows: [(key, of(members)) for key, members in _groups(rows).items()],
    )


def _of_all(name: str, aggregate: Callable[[], Any], of: Callable[[Items], Any]) -> Query:
    return unary(f"{name}_of_all", lambda t: t.aggregate(aggregate()), lambda rows: [of(rows)])


GROUPED = (
    *(_by_group(*each) for each in AGGREGATES),
    *(_of_all(*each) for each in AGGREGATES),
    unary(
        "several_aggregates",
        lambda t: t.group_by(group).aggregate(Count(), Sum(value), Max(value)),
        lambda rows: [
            (key, len(g), sum(map(value, g)), max(map(value, g)))
            for key, g in _groups(rows).items()
        ],
    ),
    unary(
        "having",
        lambda t: t.group_by(group).aggregate(Count()).where(lambda key, n: n > 1),
        lambda rows: [(key, len(g)) for key, g in _groups(rows).items() if len(g) > 1],
    ),
    unary(
        "each",
        lambda t: t.group_by(group).each(lambda g: g.where(is_high).aggregate(Count())),
        lambda rows: [(key, sum(map(is_high, g))) for key, g in _groups(rows).items()],
    ),
    unary(
        "top",
        lambda t: t.group_by(group).top(2, by=value),
        lambda rows: [
            row
            for g in _groups(rows).values()
            for row in sorted(sorted(g), key=value, reverse=True)[:2]
        ],
    ),
    unary(
        "first",
        lambda t: t.group_by(lambda r: r.value % 2).first(by="value"),
        lambda rows: [
            min((r for r in rows if r.value % 2 == odd), key=lambda r: (r.value, r))
            for odd in {r.value % 2 for r in rows}
        ],
    ),
    unary(
        "reduce",
        lambda t: t.group_by(group).reduce(lambda key, rows: [len(rows), max(map(value, rows))]),
        lambda rows: [
            (key, row) for key, g in _groups(rows).items() for row in (len(g), max(map(value, g)))
        ],
    ),
)


# Joins: by key, by predicate, by both.


@dataclass(frozen=True)
class Condition:
    """Condition of two matching rows, as arguments of a join and as a plain function."""

    name: str
    arguments: dict[str, Any]
    fits: Callable[[Item, Item], bool]


CONDITIONS = (
    Condition("by_key", {"left_key": group, "right_key": group}, lambda a, b: a.group == b.group),
    Condition(
        "by_predicate", {"on": lambda a, b: a.value < b.value}, lambda a, b: a.value < b.value
    ),
    Condition(
        "by_both",
        {"left_key": group, "right_key": group, "on": lambda a, b: a.value <= b.value},
        lambda a, b: a.group == b.group and a.value <= b.value,
    ),
)


def _pairs(fits: Any, left: Items, right: Items) -> list[tuple[Item, Item]]:
    return [(a, b) for a in left for b in right if fits(a, b)]


def _alone_left(fits: Any, left: Items, right: Items) -> list[tuple[Item, None]]:
    return [(a, None) for a in left if not any(fits(a, b) for b in right)]


def _alone_right(fits: Any, left: Items, right: Items) -> list[tuple[None, Item]]:
    return [(None, b) for b in right if not any(fits(a, b) for a in left)]


def _joins(condition: Condition) -> tuple[Query, ...]:
    name, on, fits = condition.name, condition.arguments, condition.fits
    return (
        binary(f"join_{name}", lambda s, t: s.join(t, **on), lambda a, b: _pairs(fits, a, b)),
        binary(
            f"left_join_{name}",
            lambda s, t: s.left_join(t, **on),
            lambda a, b: [*_pairs(fits, a, b), *_alone_left(fits, a, b)],
        ),
        binary(
            f"right_join_{name}",
            lambda s, t: s.right_join(t, **on),
            lambda a, b: [*_pairs(fits, a, b), *_alone_right(fits, a, b)],
        ),
        binary(
            f"full_join_{name}",
            lambda s, t: s.full_join(t, **on),
            lambda a, b: [
                *_pairs(fits, a, b),
                *_alone_left(fits, a, b),
                *_alone_right(fits, a, b),
            ],
        ),
        binary(
            f"semi_join_{name}",
            lambda s, t: s.semi_join(t, **on),
            lambda a, b: [x for x in a if any(fits(x, y) for y in b)],
        ),
        binary(
            f"anti_join_{name}",
            lambda s, t: s.anti_join(t, **on),
            lambda a, b: [x for x in a if not any(fits(x, y) for y in b)],
        ),
    )


JOINS = (
    *(query for condition in CONDITIONS for query in _joins(condition)),
    binary("product", lambda s, t: s.join(t), lambda a, b: _pairs(lambda x, y: True, a, b)),
    binary(
        "left_join_with_all",
        lambda s, t: s.left_join(t),
        lambda a, b: [*_pairs(lambda x, y: True, a, b), *_alone_left(lambda x, y: True, a, b)],
    ),
    binary("semi_join_with_any", lambda s, t: s.semi_join(t), lambda a, b: a if b else []),
    binary("anti_join_with_any", lambda s, t: s.anti_join(t), lambda a, b: [] if b else a),
    binary(
        "full_join_of_a_pair",
        lambda s, t: s.join(t, left_key=group, right_key=group).full_join(
            t, left_key=lambda a, b: a.value, right_key=value
        ),
        lambda a, b: _full_of_pairs(_pairs(lambda x, y: x.group == y.group, a, b), b),
    ),
)


def _full_of_pairs(pairs: list[tuple[Item, Item]], right: Items) -> Iterable[Any]:
    yield from ((a, b, c) for a, b in pairs for c in right if a.value == c.value)
    values = {c.value for c in right}
    yield from ((a, b, None) for a, b in pairs if a.value not in values)
    values = {a.value for a, _ in pairs}
    yield from ((None, None, c) for c in right if c.value not in values)


SETS = (
    binary("union", lambda s, t: s | t, lambda a, b: set(a) | set(b)),
    binary("difference", lambda s, t: s - t, lambda a, b: set(a) - set(b)),
    binary("intersection", lambda s, t: s & t, lambda a, b: set(a) & set(b)),
    binary("union_all", lambda s, t: s + t, lambda a, b: a + b),
    binary(
        "difference_all",
        lambda s, t: s.difference_all(t),
        lambda a, b: (Counter(a) - Counter(b)).elements(),
    ),
    binary(
        "intersection_all",
        lambda s, t: s.intersection_all(t),
        lambda a, b: (Counter(a) & Counter(b)).elements(),
    ),
    binary(
        "intersection_of_selects",
        lambda s, t: s.select(group).intersection_all(t.select(group)),
        lambda a, b: (Counter(map(group, a)) & Counter(map(group, b))).elements(),
    ),
)

ORDERED = (
    ordered("order_by", lambda t: t.order_by(value), lambda rows: sorted(rows, key=value)),
    ordered(
        "order_by_with_ties",
        lambda t: t.order_by(group),
        lambda rows: sorted(rows),
    ),
    ordered(
        "order_by_descending_with_ties",
        lambda t: t.order_by(group, descending=True),
        lambda rows: sorted(sorted(rows), key=group, reverse=True),
    ),
    ordered(
        "limit_1",
        lambda t: t.order_by(value).limit(1),
        lambda rows: sorted(rows, key=value)[:1],
    ),
    ordered(
        "limit_2_descending",
        lambda t: t.order_by(value, descending=True).limit(2),
        lambda rows: sorted(rows, key=value, reverse=True)[:2],
    ),
    ordered(
        "limit_2_offset_1",
        lambda t: t.order_by(group).limit(2, offset=1),
        lambda rows: sorted(rows)[1:3],
    ),
    ordered("limit_0", lambda t: t.order_by(value).limit(0), lambda rows: []),
    ordered(
        "select_of_limit",
        lambda t: t.order_by(value).limit(2).select(group),
        lambda rows: map(group, sorted(rows, key=value)[:2]),
    ),
    ordered(
        "select_of_order",
        lambda t: t.order_by(group, descending=True).select(value),
        lambda rows: map(value, sorted(sorted(rows), key=group, reverse=True)),
    ),
    ordered(
        "limit_of_where_of_bind_of_order",
        lambda t: t.order_by(value).bind(group, value).where(lambda g, v: v > 1).limit(2),
        lambda rows: [
            (group(r), value(r)) for r in sorted(sorted(rows), key=value) if value(r) > 1
        ][:2],
    ),
    ordered(
        "extend_of_limit",
        lambda t: t.order_by(value, descending=True).limit(3).extend(group).select(lambda t, g: g),
        lambda rows: map(group, sorted(sorted(rows), key=value, reverse=True)[:3]),
    ),
)

QUERIES = (*LINEAR, *GROUPED, *JOINS, *SETS, *ORDERED)


def different(relation: Any) -> Any:
    """The different rows, where no order would be lost: another view over a relation."""
    return relation if isinstance(relation, OrderedRelation) else relation.distinct()
