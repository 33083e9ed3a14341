"""Joins on one equation or another have the rows, weights and exceptions of the plan as written."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Count, Database, fixpoint
from tests.budget import seeds

Query = Callable[[Any, Any], Any]
VALUES = (0, 1, 2, True, 1.0, None, math.nan, "1", (1, math.nan), (1,), frozenset([1]))


@dataclass(frozen=True)
class Row:
    a: Any
    b: Any


@dataclass(frozen=True)
class Loose(Row):
    """A row whose `a` may be unhashable."""

    def __hash__(self) -> int:
        return hash(self.b)


QUERIES: dict[str, Query] = {
    "two": lambda t, u: t.join(u, on=lambda x, y: x.a == y.a or x.b == y.b),
    "three": lambda t, u: t.join(u, on=lambda x, y: x.a == y.b or y.a == x.b or (x.b == y.b)),
    "both of a row": lambda t, u: t.join(u, on=lambda x, y: x.a == y.a or x.a == y.b),
    "tuples": lambda t, u: t.join(u, on=lambda x, y: (x.a, x.b) == (y.a, y.b) or x.b == y.a),
    "more": lambda t, u: t.join(
        u, on=lambda x, y: (x.a == y.a and x.b != 1) or (x.b == y.b and y.a is not None)
    ),
    "before and after": lambda t, u: t.join(
        u, on=lambda x, y: x.a != y.b and (x.a == y.a or x.b == y.b) and x.b is not None
    ),
    "raises last": lambda t, u: t.join(u, on=lambda x, y: x.a == y.a or x.b == 1 / y.b),
    "raises after": lambda t, u: t.join(
        u, on=lambda x, y: (x.a == y.a or x.b == y.b) and x.a + y.b != 3
    ),
    "of one": lambda t, u: t.join(t, on=lambda x, y: x.a == y.b or x.b == y.b),
    "made rows": lambda t, u: (
        t.select(lambda x: (x.b, x.a))
        .join(u.where(lambda y: y.a != 1), on=lambda x, y: x[0] == y.a or x[1] == y.b)
        .select(lambda x, y: (x[0], y.a))
    ),
    "of a join": lambda t, u: t.join(u, on=lambda x, y: x.a == y.a).join(
        t, on=lambda x, y, z: x.b == z.a or y.b == z.b
    ),
    "counted": lambda t, u: (
        t.join(u, on=lambda x, y: x.a == y.a or x.b == y.b)
        .group_by(lambda x, y: y.b)
        .aggregate(Count())
    ),
    "semi_join": lambda t, u: t.semi_join(u, on=lambda x, y: x.a == y.a or x.b == y.b),
    "semi_join of three": lambda t, u: t.semi_join(
        u, on=lambda x, y: y.b is not None and (x.a == y.a or x.b == y.b or x.b == y.a)
    ),
    "anti_join": lambda t, u: t.anti_join(u, on=lambda x, y: x.a == y.a or x.b == y.b),
    "anti_join that raises": lambda t, u: t.anti_join(u, on=lambda x, y: x.a == y.a or 1 / y.b > 1),
    "distinct": lambda t, u: (
        t.join(u, on=lambda x, y: x.a == y.a or x.b == y.b).select(lambda x, y: x).distinct()
    ),
    "left_join": lambda t, u: t.left_join(u, on=lambda x, y: x.a == y.a or x.b == y.b),
}


@pytest.mark.long
@pytest.mark.parametrize("is_stored", [True, False])
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, Row) for name in QUERIES),
        *((name, Loose) for name in QUERIES if name != "made rows"),  # whose rows need a hash
    ],
)
def test_they_equal_the_query_as_written(name: str, is_stored: bool, kind: type[Row]) -> None:
    for seed in seeds(12, share=12):
        random = Random(seed)
        sides = [_side(QUERIES[name], optimize, is_stored, kind) for optimize in (True, False)]
        held: list[list[Row]] = [[], []]
        for _ in range(12):
            before = [list(rows) for rows in held]
            number = random.choice((1, 1, 1, 4))
            changes = [_change(random, held, is_stored, kind) for _ in range(number)]
            raised = [_raised(side, changes) for side in sides]
            assert raised[0] == raised[1], (name, seed)
            if raised[0]:
                held = before
            shown = [Counter(dict(view.zset().items())) for _, _, view in sides]
            assert shown[0] == shown[1], (name, seed)
        if is_stored:
            sides[0][2].verify()


@pytest.mark.parametrize("seed", seeds(12))
def test_so_do_recursions(seed: int) -> None:
    def query(t: Any, u: Any) -> Any:
        return fixpoint(
            lambda r: t | r.join(u, on=lambda x, y: x.a == y.b or x.b == y.a).select(lambda x, y: y)
        )

    random = Random(seed)
    sides = [_side(query, optimize, True, Row) for optimize in (True, False)]
    held: list[list[Row]] = [[], []]
    for _ in range(20):
        changes = [_change(random, held, True, Row)]
        assert [_raised(side, changes) for side in sides] == [None, None]
        assert Counter(list(sides[0][2])) == Counter(list(sides[1][2]))
    sides[0][2].verify()


def _side(
    query: Query, optimize: bool, is_stored: bool, kind: type[Row]
) -> tuple[Database, list[Any], Any]:
    db = Database(optimize=optimize)
    tables: list[Any] = [db.table(kind, name=name, stored=is_stored) for name in ("t", "u")]
    return db, tables, query(*tables).materialize()


def _change(
    random: Random, held: list[list[Row]], is_stored: bool, kind: type[Row]
) -> tuple[int, Row, int]:
    """Draw an insert or delete; if nothing is stored, also a delete of a missing row."""
    place = random.randrange(2)
    row = kind(random.choice(VALUES), random.choice(VALUES))
    if kind is Loose and random.random() < 0.2:
        row = kind([1], row.b)
    if held[place] and random.random() < 0.35:
        return place, held[place].pop(random.randrange(len(held[place]))), -1
    if not is_stored and random.random() < 0.3:
        return place, row, -1
    held[place].append(row)
    return place, row, 1


def _raised(side: tuple[Database, list[Any], Any], changes: Any) -> type[Exception] | None:
    """Return the error class of a commit, or None."""
    db, tables, _ = side
    try:
        with db.transaction():
            for place, row, weight in changes:
                if weight > 0:
                    tables[place].add(row)
                else:
                    tables[place].remove(row)
    except Exception as error:
        return type(error)
    return None
