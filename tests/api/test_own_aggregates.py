"""Subclasses of aggregates: a query depends on their behaviour, not on their class names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import pytest

import reactive
from reactive import (
    Aggregate,
    Aggregation,
    ApproxCountDistinct,
    ArgMax,
    ArgMin,
    Avg,
    BoolAnd,
    BoolOr,
    Collect,
    Count,
    CountDistinct,
    Database,
    FirstBy,
    LastBy,
    Max,
    Median,
    Min,
    Monoid,
    MostCommon,
    Quantile,
    StdDev,
    StringJoin,
    Sum,
    Variance,
)
from tests.budget import sampled

BUILT_IN: tuple[Any, ...] = (
    *(Aggregate, Avg, Collect, Count, CountDistinct, Max, Min, Monoid, Sum),
    *(ApproxCountDistinct, ArgMax, ArgMin, BoolAnd, BoolOr, FirstBy, LastBy, Median),
    *(MostCommon, Quantile, StdDev, StringJoin, Variance),
)
Policy = Literal["raise", "drop", "null"]
Make = Callable[..., Any]


def _tenfold(make: Make, place: int, **of: Any) -> Any:
    """Return an aggregate ten times the sum of an item of its values."""
    return make(0, lambda s, v: s + 10 * v[place], lambda s, v: s - 10 * v[place], **of)


def _values(make: Make) -> Any:
    return make(0, lambda s, v: s + 10 * v, lambda s, v: s - 10 * v, of=lambda r: r[1])


QUERIES: dict[str, Callable[[Any, Make], Any]] = {
    "values": lambda t, make: t.group_by(lambda r: r[0]).aggregate(_values(make)),
    "values of one group": lambda t, make: t.aggregate(_values(make), Count()),
    "rows": lambda t, make: t.group_by(lambda r: r[0]).aggregate(_tenfold(make, 1)),
    "rows of a select": lambda t, make: (
        t.select(lambda r: (r[0], r[1], r[1])).group_by(lambda r: r[0]).aggregate(_tenfold(make, 2))
    ),
    "pairs": lambda t, make: (
        t.left_join(t, on=lambda a, b: a[0] == b[0] and a != b)
        .group_by(lambda a, b: a[0])
        .aggregate(_tenfold(make, 1, of=lambda a, b: a if b is None else b))
    ),
    "a text of it": lambda t, make: (
        t.group_by(lambda r: r[0])
        .aggregate(make(0, lambda s, v: s + v, lambda s, v: s - v, str, of=lambda r: r[1]))
        .where(lambda key, total: total > "0")
        .select(lambda key, total: total + key)
    ),
}


def _played(query: str, name: str, policy: Policy) -> list[str]:
    """Return the rows and errors of a view with an aggregate whose class is called `name`."""
    db = Database()
    t = db.table(tuple, name="t")
    view = QUERIES[query](t, type(name, (Aggregate,), {})).materialize(on_error=policy)
    raising: list[Any] = [] if policy == "raise" else [("a", "x"), ("b", None), ("c", "y")]
    shown = []
    for added, removed in (
        ([("a", 1), ("a", 2), ("b", 5)], []),
        (raising, [("a", 1)]),
        ([("c", 4)], raising),
    ):
        t.add_all(added)
        t.remove_all(removed)
        view.verify()
        shown += sorted(map(repr, view))
        if policy != "raise":
            view.errors.verify()
            shown += sorted(str(error.error) for error in view.errors)
    return shown


@pytest.mark.long
@sampled
@pytest.mark.parametrize("policy", ["raise", "drop", "null"])
@pytest.mark.parametrize("query", QUERIES)
def test_an_own_aggregate_may_have_the_name_of_any_other(query: str, policy: Policy) -> None:
    expected = _played(query, "Own", policy)
    for kind in BUILT_IN:
        assert _played(query, kind.__name__, policy) == expected, kind.__name__


def test_all_aggregates_are_played() -> None:
    kinds = {each for each in vars(reactive).values() if isinstance(each, type)}
    assert {k for k in kinds if issubclass(k, Aggregation)} == {Aggregation, *BUILT_IN}


MORE: dict[Any, tuple[Any, ...]] = {
    Quantile: (0.3,),
    **dict.fromkeys((ArgMax, ArgMin), (lambda r: str(r[1]),)),
}


@pytest.mark.parametrize("kind", [k for k in BUILT_IN if k not in (Aggregate, Monoid)])
def test_a_subclass_is_planned_as_its_base(kind: Any) -> None:
    """The plan and the errors differ only in the name that is shown."""
    own = type("Own", (kind,), {})
    found = []
    for each in (kind, own):
        db = Database()
        t = db.table(tuple, name="t")
        made = each() if kind is Count else each(lambda r: r[1], *MORE.get(kind, ()))
        joined = t.select(lambda r: (r[0], r[1], r)).where(lambda r: r[2] is not None)
        view = joined.group_by(lambda r: r[0]).aggregate(made).materialize(on_error="drop")
        t.add_all([("a", 1), ("a", 2), ("b", 5), ("a", "x"), ("b", None), ("a", b"y")])
        view.verify()
        errors = sorted(str(error.error) for error in view.errors)
        text = view.explain().replace(f"{each.__name__}(", "it(")
        found.append((sorted(map(str, view)), errors, text))
    assert found[0] == found[1]
