"""Relations whose rows are written in the query."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive import Collect, Count, Database, PlanError, Sum, fixpoint, iterate
from reactive.api.literal import literal
from reactive.engine.collections.zset import canonical
from tests.budget import examples


@dataclass(frozen=True)
class Size:
    name: str
    least: int


LITERALS: tuple[tuple[Any, ...], ...] = (
    (),
    (1,),
    (2, 2),
    (0, 1, 1, 2),
    (math.nan,),
    (None, "a"),
)
QUERIES: dict[
    str, tuple[Callable[[Any, Any], Any], Callable[[list[int], list[Any]], list[Any]]]
] = {
    "alone": (lambda t, v: v, lambda rows, some: some),
    "joined": (
        lambda t, v: t.join(v, on=lambda a, b: a == b),
        lambda rows, some: [(a, b) for a in rows for b in some if a == b],
    ),
    "on the left": (
        lambda t, v: v.join(t, on=lambda b, a: a == b),
        lambda rows, some: [(b, a) for a in rows for b in some if a == b],
    ),
    "by keys": (
        lambda t, v: t.join(v, left_key=lambda a: a, right_key=lambda b: b),
        lambda rows, some: [(a, b) for a in rows for b in some if a == b],
    ),
    "product": (
        lambda t, v: v.join(t).select(lambda b, a: (a, b)),
        lambda rows, some: [(a, b) for a in rows for b in some],
    ),
    "beside several": (
        lambda t, v: t.join(t, on=lambda a, b: a < b).join(v),
        lambda rows, some: [(a, b, c) for a in rows for b in rows for c in some if a < b],
    ),
    "left_join": (
        lambda t, v: t.left_join(v, on=lambda a, b: a == b),
        lambda rows, some: [
            pair for a in rows for pair in [(a, b) for b in some if a == b] or [(a, None)]
        ],
    ),
    "in": (
        lambda t, v: t.semi_join(v, on=lambda a, b: a == b),
        lambda rows, some: [a for a in rows if any(a == b for b in some)],
    ),
    "not in": (
        lambda t, v: t.anti_join(v, on=lambda a, b: a == b),
        lambda rows, some: [a for a in rows if not any(a == b for b in some)],
    ),
    "which are not": (
        lambda t, v: v.anti_join(t, on=lambda a, b: a == b),
        lambda rows, some: [b for b in some if not any(a == b for a in rows)],
    ),
    "union": (
        lambda t, v: t.union(v),
        lambda rows, some: [*{canonical(r): r for r in [*rows, *some]}.values()],
    ),
    "union_all": (lambda t, v: v + t, lambda rows, some: [*some, *rows]),
    "grouped": (
        lambda t, v: v.group_by(lambda b: b).aggregate(Count()),
        lambda rows, some: [*Counter(map(canonical, some)).items()],
    ),
    "all of them": (
        lambda t, v: v.aggregate(Count()).join(t),
        lambda rows, some: [(len(some), a) for a in rows],
    ),
    "made of them": (
        lambda t, v: v.extend(lambda b: b is None).where(lambda b, n: not n),
        lambda rows, some: [(b, False) for b in some if b is not None],
    ),
    "of each group": (
        lambda t, v: t.group_by(lambda a: a % 2).each(lambda g: g.join(v)),
        lambda rows, some: [(a % 2, a, b) for a in rows for b in some],
    ),
    "recursive": (
        lambda t, v: fixpoint(
            lambda r: v.where(lambda b: b == 1).union(
                r.join(t, on=lambda a, b: a == b).select(lambda a, b: a + 1)
            )
        ),
        lambda rows, some: [*_reached(set(rows))] if 1 in some else [],
    ),
    "in rounds": (
        lambda t, v: iterate(lambda r: r.union_all(v), t, times=2),
        lambda rows, some: [*rows, *some, *some],
    ),
    "of records": (
        lambda t, v: (
            t.join(t._new(literal([Size("s", 0), Size("l", 2)], Size)))
            .where(lambda a, s: a >= s.least)
            .select(lambda a, s: (a, s.name))
        ),
        lambda rows, some: [(a, n) for a in rows for n, m in (("s", 0), ("l", 2)) if a >= m],
    ),
}


def _reached(edges: set[int]) -> set[int]:
    found = {1}
    while not {n + 1 for n in found & edges} <= found:
        found |= {n + 1 for n in found & edges}
    return found


HISTORIES = st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=4), max_size=4)


@examples(60)
@given(history=HISTORIES, optimize=st.booleans(), which=st.sampled_from(LITERALS))
@pytest.mark.parametrize("name", QUERIES)
def test_they_are_there_beside_what_changes(
    name: str, history: Any, optimize: bool, which: tuple[Any, ...]
) -> None:
    make, plain = QUERIES[name]
    db = Database(optimize=optimize)
    table = db.table(int, name="numbers")
    relation = make(table, db.values(which))
    view = relation.materialize()
    some = [*which]
    for commit in [[], *history]:
        with db.transaction():
            for comes, row in commit:
                (table.add if comes else table.discard)(row)
        assert _bag(view) == _bag(plain([*table], some))
        view.verify()
    assert _bag(relation.materialize()) == _bag(view)


def _bag(rows: Any) -> Counter[str]:
    return Counter(map(repr, rows))


def test_a_query_of_nothing_else() -> None:
    db = Database()
    numbers = db.values([3, 1, 2])
    assert numbers.tables() == [] and sorted(numbers.materialize()) == [1, 2, 3]
    assert numbers.order_by(lambda n: n).limit(2).head(2) == [1, 2]
    told: list[Any] = []
    with numbers.subscribe(told.append):
        db.table(int).add(1)
    assert told == []
    assert list(db.values([]).aggregate(Sum(lambda n: n)).materialize()) == [0]
    assert list(db.values([(1, "a")]).aggregate(Collect(lambda r: r[1])).materialize())


def test_what_is_known_of_them() -> None:
    db: Any = Database()
    pairs = db.values([(1, "a"), (2, "b")])
    with pytest.raises(PlanError, match="a tuple of 2 items has no item 2"):
        pairs.select(lambda r: r[2])
    with pytest.raises(PlanError, match="Size has no field 'leest'; did you mean 'least'"):
        db.values([], Size).where(lambda s: s.leest > 1)
    assert "values (1, 'a'), (2, 'b')" in repr(pairs)
    assert "values 0, 1, 2, 3, ... 96 more" in repr(db.values(range(100)))


def test_they_are_told_apart_by_class_too() -> None:
    db = Database()
    views = [db.values([one]).join(db.table(int)).materialize() for one in (1, True, 1.0)]
    for view in views:
        (table,) = view.relation.tables()
        table.add(7)
    kinds = [type(next(iter(view))[0]) for view in views]
    assert kinds == [int, bool, float]


@pytest.mark.parametrize(
    ("rows", "row_type", "message"),
    [
        ("abc", None, "values takes rows, not 'abc'"),
        (3, None, "values takes rows, not 3"),
        ([[1]], None, r"cannot have the list \[1\] as a row: it has no hash"),
        ([1, "a"], int, "values of int cannot have the row 'a'"),
        ([(1, 2, 3)], tuple[int, int], r"values of tuple\[int, int\] cannot have the row"),
    ],
)
def test_what_is_refused(rows: Any, row_type: Any, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        Database().values(rows, row_type)
