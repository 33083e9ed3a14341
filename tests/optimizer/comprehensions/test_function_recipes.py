"""A function that is read again with other variables gets the plan that its reading has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from optimizer.plans.substitution import RECIPE
from reactive import Database, live
from reactive.api.internal_interface import engine_of
from tests.counted_calls import calls_of


@dataclass(frozen=True)
class Line:
    id: int
    of: int
    size: float


Tables = tuple[Database, Any, Any]


def _tables() -> Tables:
    db = Database()
    lines, others = db.table(Line, name="lines"), db.table(Line, key=lambda r: r.id, name="others")
    lines.add_all([Line(n, n % 4, n / 2) for n in range(12)])
    others.add_all([Line(n, n % 3, n / 3) for n in range(6)])
    return db, lines, others


def double(value: Any) -> Any:
    return value + value


def _filter(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: [r.id for r in lines if r.of == k])


def _join(t: Tables, k: Any) -> Any:
    db, lines, others = t
    return db.query(
        lambda: [(r.id, o.id) for r in lines if r.of < k for o in others if o.id == r.of]
    )


def _sum(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: sum(r.id for r in lines if r.of > k))


def _mapping(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(
        lambda: {n: sum(r.id + k for r in lines if r.of == n) for n in {r.of for r in lines}}
    )


def _correlated(t: Tables, k: Any) -> Any:
    db, lines, others = t
    return db.query(lambda: [o.id for o in others if any(r.of == o.id and r.id > k for r in lines)])


def _value(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: [(r.id, k) for r in lines])


def _computed(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: [r.id for r in lines if r.of == k + 1])


def _limit(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: sorted(r.id for r in lines)[:k])


def _choice(t: Tables, k: Any) -> Any:
    db, lines, others = t
    return db.query(lambda: [r.id for r in lines] if k else [r.id for r in others])


def _called(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: [r.id for r in lines if double(r.of) == k])


def _shown(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(lambda: [f"{k}: {r.id}" for r in lines])


def _chosen_value(t: Tables, k: Any) -> Any:
    db, lines, others = t
    return db.query(lambda: [r.id for r in (lines if k == 3 else others) if r.of != k])


def _key(t: Tables, k: Any) -> Any:
    db, lines, others = t
    return db.query(lambda: [r.id for r in lines if others[k].of == r.of])


def _sorted(t: Tables, k: Any) -> Any:
    db, lines, _ = t
    return db.query(
        lambda: sorted((r for r in lines if r.of != k), key=lambda r: (r.size * k, r.id))
    )


def _generator(t: Tables, k: Any) -> Any:
    lines = t[1]
    return live(r.id for r in lines if r.of == k)


QUERIES = (
    *(_filter, _join, _sum, _mapping, _correlated, _value, _computed, _limit, _choice, _called),
    *(_shown, _chosen_value, _key, _sorted, _generator),
)
VALUES: tuple[Any, ...] = (
    1,
    2,
    3,
    0,
    -1,
    2.5,
    1.5,
    float("nan"),
    float("nan"),
    None,
    "x",
    "y",
    2,
    1,
    0,
)
VALUES += (True, False, 1.0)


def _plain(query: Callable[[Tables, Any], Any], t: Tables, k: Any) -> Any:
    """Return a query that is read without recipes."""
    engine = engine_of(t[0])
    recipes, engine.recipes = engine.recipes, None
    try:
        return query(t, k)
    finally:
        engine.recipes = recipes


def _outcome(run: Callable[[], Any]) -> Any:
    try:
        return run()
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_by_a_recipe_is_the_query_of_its_function(query: Any) -> None:
    t = _tables()
    for k in VALUES:
        found = _outcome(lambda k=k: query(t, k))  # type: ignore[misc]
        plain = _outcome(lambda k=k: _plain(query, t, k))  # type: ignore[misc]
        if isinstance(plain, tuple):
            assert found == plain
            continue
        if RECIPE in found.plan.known:
            assert found.plan == plain.plan and found.kind == plain.kind
        shown = _outcome(lambda: found.materialize())
        twin = _outcome(lambda: plain.materialize())
        if isinstance(twin, tuple):
            assert shown[0] is twin[0]
            continue
        t[1].add(Line(100, 1, 1.0))
        t[2].add(Line(100, 100, 1.0))
        shown.verify()
        assert sorted(map(str, shown.zset().items())) == sorted(map(str, twin.zset().items()))
        t[1].remove(Line(100, 1, 1.0))
        t[2].remove(Line(100, 100, 1.0))
        shown.verify()
        shown.close()


@pytest.mark.parametrize("query", [_filter, _join, _sum, _value, _called, _generator])
def test_most_functions_have_recipes(query: Any) -> None:
    t = _tables()
    made = [query(t, k) for k in (11, 12, 13)]
    assert RECIPE not in made[0].plan.known and RECIPE in made[2].plan.known


def test_a_variable_that_changes_is_told_by_each_query_of_a_recipe() -> None:
    t, views = _tables(), []
    lines = t[1]
    for k in range(4):

        def query(k: int = k) -> Any:
            bound = k
            made = t[0].query(lambda: [r.id for r in lines if r.of == bound]).materialize()

            def change() -> None:
                nonlocal bound
                bound = 9

            return made, change

        views.append(query())
    assert [len(view) for view, _ in views] == [3, 3, 3, 3]
    views[3][1]()
    with pytest.warns(UserWarning, match="bound"):
        lines.add(Line(50, 3, 1.0))


def test_tables_of_other_names_have_recipes_of_their_own() -> None:
    t = _tables()
    for k in (11, 12, 13):
        assert _filter(t, k).plan == _plain(_filter, t, k).plan
    other = (t[0], t[2], t[1])
    for k in (11, 12, 13):
        assert _filter(other, k).plan == _plain(_filter, other, k).plan


def test_one_more_query_of_a_function_takes_few_calls() -> None:
    t = _tables()
    for k in (11, 12, 13):
        _join(t, k)
    assert calls_of(lambda: _join(t, 14)) < 600  # 2,400 by reading
