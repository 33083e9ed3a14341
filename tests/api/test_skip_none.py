"""None in aggregates: left out with `skip_none=True`, as in SQL; else the error says so."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    PlanError,
    Relation,
    Sum,
    Table,
    View,
    fixpoint,
)
from tests.borders.offload.elsewhere import Elsewhere

Rel = Relation[*tuple[Any, ...]]
VALUES: list[Any] = [None, None, 0, 1, 5, -3, 2**70, 0.5, 1e300, math.nan, math.inf, True]
RAGGED: list[Any] = [None, *map(Decimal, ("0.1", "-3.3")), Decimal("NaN"), 2]


@dataclass(frozen=True, slots=True)
class Row:
    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Place:
    key: Any
    region: str


def expected(values: list[Any]) -> tuple[Any, ...]:
    """Sum, Avg, Min, Max and CountDistinct of the values that are there, by other means."""
    there = [v for v in values if v is not None]
    numbers = [v for v in there if v == v]
    least = min(numbers, default=next(iter(there), None))
    greatest = next((v for v in there if v != v), max(numbers, default=None))
    total = exact(there)
    mean = total / len(there) if there else None
    return total, mean, least, greatest, len(set(map(repr_of_nan, there)))


def exact(values: list[Any]) -> Any:
    if any(isinstance(v, float) for v in values):
        odd = {repr(v) for v in values if not math.isfinite(v)}
        return (float(odd.pop()) if len(odd) == 1 else math.nan) if odd else math.fsum(values)
    return sum(values)


def repr_of_nan(value: Any) -> Any:
    return "nan" if value != value else value


def five(f: Any) -> list[Any]:
    kinds: list[Any] = [Sum, Avg, Min, Max, CountDistinct]
    return [kind(f, skip_none=True) for kind in kinds]


def all_queries(rows: Table[Row], places: Table[Place]) -> dict[str, Rel]:
    value: Any = lambda r: r.value  # noqa: E731
    joined = rows.join(places, on=lambda r, p: r.key == p.key)
    opaque: Any = lambda r: next(iter([r.value]))  # noqa: E731
    return {
        "grouped": rows.group_by(lambda r: r.key).aggregate(*five(value)),
        "one": rows.group_by(lambda r: r.key).aggregate(Sum(value, skip_none=True)),
        "ungrouped": rows.aggregate(*five(value)),
        "of a selection": rows.select(lambda r: (r.key, r.value))
        .group_by(lambda p: p[0])
        .aggregate(*five(lambda p: p[1])),
        "opaque": rows.group_by(lambda r: r.key).aggregate(*five(opaque)),
        "joined": joined.group_by(lambda r, p: p.region).aggregate(*five(lambda r, p: r.value)),
        "sums of a side": joined.group_by(lambda r, p: p.region).aggregate(
            Sum(lambda r, p: r.value, skip_none=True), Count()
        ),
        "of either side": joined.aggregate(
            Sum(lambda r, p: r.value if p.region else None, skip_none=True),
            Avg(lambda r, p: r.value, skip_none=True),
        ),
        "beside others": rows.group_by(lambda r: r.key).aggregate(
            Min(value, skip_none=True),
            Collect(value),
            CountDistinct(value),
            Max(opaque, skip_none=True),
        ),
    }


def oracle(rows: Counter[Row], places: list[Place]) -> dict[str, Counter[Any]]:
    """Return the rows of each query, computed from lists."""
    mine, joined = (
        groups((r.key, r.value) for r in rows.elements()),
        groups((p.region, r.value) for r in rows.elements() for p in places if p.key == r.key),
    )
    whole = [r.value for r in rows.elements()]
    pairs = [value for values in joined.values() for value in values]
    by_key = [(key, *expected(values)) for key, values in mine.items()]
    by_region = [(key, *expected(values)) for key, values in joined.items()]
    found: dict[str, list[Any]] = {
        "grouped": by_key,
        "one": [row[:2] for row in by_key],
        "ungrouped": [expected(whole)],
        "of a selection": by_key,
        "opaque": by_key,
        "joined": by_region,
        "sums of a side": [(row[0], row[1], len(joined[row[0]])) for row in by_region],
        "of either side": [expected(pairs)[:2]],
        "beside others": [
            (
                key,
                expected(values)[2],
                sorted(map(repr, map(repr_of_nan, values))),
                len(set(map(repr_of_nan, values))),
                expected(values)[3],
            )
            for key, values in mine.items()
        ],
    }
    return {name: Counter(map(shown, of)) for name, of in found.items()}


def groups(pairs: Any) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def shown(row: Any) -> str:
    def part(value: Any) -> str:
        if hasattr(value, "items"):
            return repr(sorted(map(repr, map(repr_of_nan, value))))
        return repr(float(value)) if isinstance(value, bool | float | int) else repr(value)

    return " ".join(map(part, row))


def row_of(view: View[*tuple[Any, ...]]) -> Counter[str]:
    return Counter(shown(row) for row in view)


@pytest.mark.long
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_none_is_not_there(seed: int, optimize: bool) -> None:
    random = Random(seed)
    db = Database(optimize=optimize)
    rows, places = db.table(Row), db.table(Place)
    towns = [Place(1, "north"), Place(2, "north"), Place(3, "south")]
    places.add_all(towns)
    views = {name: query.materialize(name) for name, query in all_queries(rows, places).items()}
    held: Counter[Row] = Counter()
    for step in range(40):
        added = [
            Row(random.randrange(4), random.choice(VALUES)) for _ in range(random.choice([1, 3]))
        ]
        there = list(held.elements())
        random.shuffle(there)
        removed = there[: random.choice([0, 1, 4])]
        with db.transaction():
            rows.add_all(added)
            rows.remove_all(removed)
            if step % 7 == 6:
                town = random.choice(towns)
                towns.remove(town)
                places.remove(town)
                towns.append(Place(town.key, random.choice(["north", "south", "east"])))
                places.add(towns[-1])
        held = held + Counter(added) - Counter(removed)
        known = oracle(held, towns)
        for name, view in views.items():
            assert row_of(view) == known[name], name
            view.verify()
    late = {name: query.materialize() for name, query in all_queries(rows, places).items()}
    assert {name: row_of(view) for name, view in late.items()} == known


@pytest.mark.parametrize("optimize", [True, False])
def test_decimals_beside_none(optimize: bool) -> None:
    db = Database(optimize=optimize)
    rows = db.table(Row)
    view = rows.aggregate(*five(lambda r: r.value)).materialize()
    rows.add_all(Row(n, value) for n, value in enumerate(RAGGED[:3]))
    assert view.value == (Decimal("-3.2"), Decimal("-1.6"), Decimal("-3.3"), Decimal("0.1"), 2)
    view.verify()


def test_of_no_values_a_sum_is_0_and_the_others_none() -> None:
    rows = Database().table(Row)
    every = rows.aggregate(*five(lambda r: r.value)).materialize()
    group = rows.group_by(lambda r: r.key).aggregate(*five(lambda r: r.value)).materialize()
    assert every.value == (0, None, None, None, 0)
    rows.add(Row(1, None))
    assert every.value == (0, None, None, None, 0)
    assert group[1] == (0, None, None, None, 0)
    rows.add(Row(1, 3))
    assert group[1] == (3, 3.0, 3, 3, 1)
    rows.remove(Row(1, 3))
    assert group[1] == (0, None, None, None, 0)
    rows.remove(Row(1, None))
    assert list(group) == []


def test_sums_with_and_without_none_of_one_callable_are_kept_apart() -> None:
    rows = Database().table(Row)
    value: Any = lambda r: r.value  # noqa: E731
    view = rows.aggregate(
        CountDistinct(value), CountDistinct(value, skip_none=True), Min(value, skip_none=True)
    ).materialize()
    rows.add_all([Row(1, None), Row(2, 4), Row(3, None)])
    assert view.value == (2, 1, 4)


def test_a_sum_of_a_side_of_a_join_is_kept_though_there_is_none_in_it() -> None:
    db = Database()
    rows, places = db.table(Row), db.table(Place)
    query = (
        rows.join(places, on=lambda r, p: r.key == p.key)
        .group_by(lambda r, p: p.region)
        .aggregate(Sum(lambda r, p: r.value, skip_none=True))
    )
    view = query.materialize()
    places.add(Place(1, "north"))
    rows.add_all([Row(1, None), Row(1, 4), Row(2, None)])
    assert list(view) == [("north", 4)]
    assert "groups of sums" in str(query.explain())


def test_a_refused_commit_leaves_all_as_it_was() -> None:
    rows = Database().table(Row)
    view = rows.group_by(lambda r: r.key).aggregate(*five(lambda r: r.value)).materialize()
    rows.add_all([Row(1, None), Row(1, 2), Row(2, None)])
    before = sorted(view, key=repr)
    for bad in (["x", None], [None, "x", None, 3]):
        with pytest.raises(TypeError, match="cannot sum 'x'"):
            rows.add_all(Row(1, value) for value in bad)
        assert sorted(view, key=repr) == before
    rows.remove_all([Row(1, 2), Row(1, None)])
    assert list(view) == [(2, 0, None, None, None, 0)]


def test_explain_says_so() -> None:
    rows = Database().table(Row, name="rows")
    query = rows.aggregate(Sum(lambda r: r.value, skip_none=True), Min(lambda r: r.value))
    assert "aggregate Sum(r.value, skip_none=True), Min(r.value)" in str(query.explain())


def test_what_was_moved_elsewhere_leaves_none_out_too() -> None:
    db = Database(offload=Elsewhere())
    rows = db.table(Row)
    view = rows.group_by(lambda r: r.key).aggregate(*five(lambda r: r.value)).materialize()
    rows.add_all([Row(1, None), Row(1, 2), Row(2, None)])
    view.offload()
    rows.add_all([Row(1, None), Row(2, 7)])
    assert sorted(view) == [(1, 2, 2.0, 2, 2, 1), (2, 7, 7.0, 7, 7, 1)]
    view.recall()
    rows.remove(Row(2, 7))
    assert sorted(view, key=repr) == [(1, 2, 2.0, 2, 2, 1), (2, 0, None, None, None, 0)]


@pytest.mark.parametrize("kind", [Sum, Avg])
@pytest.mark.parametrize("optimize", [True, False])
def test_a_sum_with_none_says_what_leaves_it_out(kind: Any, optimize: bool) -> None:
    rows = Database(optimize=optimize).table(Row)
    held = rows.aggregate(kind(lambda r: r.value)).materialize()
    rows.add(Row(1, 2))
    with pytest.raises(TypeError) as caught:
        rows.add(Row(1, None))
    assert str(caught.value) == (
        "cannot sum None: NoneType values have no difference\n  skip_none=True leaves None out"
    )
    assert held.value == 2


@pytest.mark.parametrize("kind", [Min, Max])
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("first", [None, 2])
def test_a_least_value_with_none_says_what_leaves_it_out(
    kind: Any, optimize: bool, first: Any
) -> None:
    rows = Database(optimize=optimize).table(Row)
    held = rows.group_by(lambda r: r.key).aggregate(kind(lambda r: r.value)).materialize()
    rows.add(Row(1, first))
    with pytest.raises(TypeError, match="'<' not supported") as caught:
        rows.add(Row(1, None if first else 2))
    assert caught.value.__notes__[0] == "  skip_none=True leaves None out"
    assert list(held) == [(1, first)]


def test_other_values_that_do_not_compare_hear_nothing_of_none() -> None:
    rows = Database().table(Row)
    held = rows.aggregate(Min(lambda r: r.value)).materialize()
    rows.add(Row(1, 2))
    with pytest.raises(TypeError, match="'<' not supported") as caught:
        rows.add(Row(1, "two"))
    assert not any("skip_none=True" in note for note in caught.value.__notes__)
    assert held.value == 2


def test_none_that_is_counted_beside_a_least_value_is_named_when_it_is_asked_for() -> None:
    rows = Database().table(Row)
    value: Any = lambda r: r.value  # noqa: E731
    held = rows.aggregate(CountDistinct(value), Min(value)).materialize()
    rows.add(Row(1, None))
    with pytest.raises(TypeError) as caught:
        rows.add(Row(1, 2))
    assert "  skip_none=True leaves None out" in caught.value.__notes__
    assert held.value == (1, None)


def test_a_fixpoint_keeps_a_row_and_skips_none() -> None:
    edges = Database().table(tuple, name="edges")
    with pytest.raises(PlanError, match="skip_none=True") as caught:
        fixpoint(
            lambda found: edges.union(found),
            keep=Min(lambda e: e[1], skip_none=True),
            by=lambda e: e[0],
        )
    assert "where(...)" in str(caught.value)
