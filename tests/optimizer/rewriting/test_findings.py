"""Queries as front ends write them cost the same as the best form: rows touched, not seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database, fixpoint
from tests.written import evaluated

ROWS = 200
Query = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the tables."""

    a: int
    b: int
    c: int


def touched(query: Query, kind: Any = Row) -> tuple[int, list[Any]]:
    """Return the rows touched while three tables are filled, and the result of the query."""
    db = Database()
    tables: list[Any] = [db.table(kind, name=name) for name in "abc"]
    view = query(*tables).materialize()
    for table in tables:
        fields = [(n, n % 100, n % 7) for n in range(ROWS)]
        table.add_all(fields if kind is tuple else [Row(*each) for each in fields])
    return view.stats().touched, sorted(map(repr, view))


SAME_KEYS: dict[str, tuple[Query, Query]] = {
    "an order of tables that begins with pairs": (
        lambda a, b, c: a.join(c).join(b).where(lambda x, z, y: x.a == y.a and y.b == z.b),
        lambda a, b, c: (
            a.join(b, on=lambda x, y: x.a == y.a)
            .join(c, on=lambda x, y, z: y.b == z.b)
            .bind(lambda x, y, z: x, lambda x, y, z: z, lambda x, y, z: y)
        ),
    ),
    "a factor of all alternatives": (
        lambda a, b, c: a.join(b).where(
            lambda x, y: (x.a == y.a and x.c == 3) or (x.a == y.a and y.c == 4)
        ),
        lambda a, b, c: a.join(b, on=lambda x, y: x.a == y.a and (x.c == 3 or y.c == 4)),
    ),
    "a constant below a key": (
        lambda a, b, c: a.where(lambda x: x.a == 7).join(b, on=lambda x, y: x.a == y.a),
        lambda a, b, c: a.join(b, on=lambda x, y: x.a == y.a and x.a == 7 and y.a == 7),
    ),
    "a condition above what pads": (
        lambda a, b, c: (
            a.left_join(b, on=lambda x, y: x.a == y.a)
            .select(lambda x, y: (x.a, y.a if y is not None else None))
            .where(lambda r: r[1] == 3)
        ),
        lambda a, b, c: a.join(b, on=lambda x, y: x.a == y.a and y.a == 3).select(
            lambda x, y: (x.a, y.a)
        ),
    ),
    "an input of which nothing is read": (
        lambda a, b, c: a.join(b).select(lambda x, y: x).distinct(),
        lambda a, b, c: a.semi_join(b, on=lambda x, y: True).distinct(),
    ),
    "the inner one of two joins": (
        lambda a, b, c: (
            a.join(b, on=lambda x, y: x.c == y.c)
            .join(c, on=lambda x, y, z: x.a == z.a)
            .select(lambda x, y, z: (x.a, z.b))
            .distinct()
        ),
        lambda a, b, c: (
            a.semi_join(b, on=lambda x, y: x.c == y.c)
            .join(c, on=lambda x, z: x.a == z.a)
            .select(lambda x, z: (x.a, z.b))
            .distinct()
        ),
    ),
    "in a union": (
        lambda a, b, c: a.join(b, on=lambda x, y: x.c == y.c).select(lambda x, y: x).union(c),
        lambda a, b, c: a.semi_join(b, on=lambda x, y: x.c == y.c).union(c),
    ),
    "in a recursion": (
        lambda a, b, c: fixpoint(
            lambda r: c.union(
                r.join(a, on=lambda e, x: e.a == x.b).join(b).select(lambda e, x, y: x)
            )
        ),
        lambda a, b, c: fixpoint(
            lambda r: c.union(r.join(a, on=lambda e, x: e.a == x.b).select(lambda e, x: x))
        ),
    ),
}


@pytest.mark.parametrize("name", SAME_KEYS)
def test_it_touches_as_few_rows_as_the_best_way_to_write_it(name: str) -> None:
    written, best = SAME_KEYS[name]
    rows, result = touched(written)
    fewest, expected = touched(best)
    assert result == expected
    assert rows <= 1.2 * fewest + 5 * ROWS


@pytest.mark.long
@pytest.mark.parametrize("tables", [12, 40])
def test_many_tables_in_any_order_are_joined_by_their_keys(tables: int) -> None:
    db = Database()
    order = Random(tables).sample(range(tables), tables)
    made: dict[str, Any] = {f"t{n}": db.table(Row, name=f"t{n}") for n in range(tables)}
    names = ", ".join(f"x{n}" for n in order)
    keys = " and ".join(f"x{n}.b == x{n + 1}.a" for n in range(tables - 1))
    joins = "".join(f".join(t{n})" for n in order[1:])
    query = evaluated(f"t{order[0]}{joins}.where(lambda {names}: {keys})", made)
    view = query.materialize()
    for n in range(tables):
        made[f"t{n}"].add_all([Row(10 * n + k, 10 * n + 10 + k, 0) for k in range(3)])
    assert len(view) == 3
    assert view.stats().touched < 100 * tables


def test_64_tables_are_joined_in_a_row() -> None:
    db = Database()
    made: dict[str, Any] = {f"t{n}": db.table(Row, name=f"t{n}") for n in range(64)}
    text = "t0"
    for n in range(1, 64):
        names = ", ".join(f"x{k}" for k in range(n + 1))
        text += f".join(t{n}, on=lambda {names}: x{n - 1}.b == x{n}.a)"
    view = evaluated(text, made).materialize()
    for n in range(64):
        made[f"t{n}"].add(Row(n, n + 1, 0))
    assert len(view) == 1
