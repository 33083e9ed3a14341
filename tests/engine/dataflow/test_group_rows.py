"""Mappings of groups follow deltas in which the old row of a key comes after the new one."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database
from reactive.engine.dataflow.leaves import GroupRows
from tests.budget import drawing


class Row(NamedTuple):
    key: int
    value: int


Texts = dict[str, Callable[[Any, Any], Callable[[], Any]]]
QUERIES: Texts = {
    "sum": lambda a, b: (
        lambda: {k: sum(r.value for r in a if r.key == k) for k in {r.key for r in b}}
    ),
    "sum of all": lambda a, b: lambda: {k: sum(r.value for r in a) for k in {r.key for r in b}},
    "count": lambda a, b: lambda: {k: sum(1 for r in a if r.key > k) for k in {r.key for r in b}},
    "sorted": lambda a, b: (
        lambda: {k: tuple(sorted(r.value for r in a)) for k in {r.key for r in b}}
    ),
    "largest": lambda a, b: (
        lambda: {k: max((r.value for r in a if r.key == k), default=0) for k in {r.key for r in b}}
    ),
    "two": lambda a, b: (
        lambda: {
            k: (sum(r.value for r in a if r.key == k), len([r for r in a if r.value > k]))
            for k in {r.key for r in b}
        }
    ),
}


@pytest.mark.parametrize(
    "delta",
    [[((1, "old"), -1), ((1, "new"), 1)], [((1, "new"), 1), ((1, "old"), -1)]],
    ids=["old first", "new first"],
)
def test_the_new_row_of_a_group_stays_in_any_order(delta: list[tuple[Any, int]]) -> None:
    rows = GroupRows()
    rows.step([((1, "old"), 1), ((2, "other"), 1)])
    rows.commit()
    rows.step(delta)
    assert sorted(rows.rows()) == [(1, "new"), (2, "other")]
    rows.undo()
    assert sorted(rows.rows()) == [(1, "old"), (2, "other")]


@pytest.mark.parametrize("name", QUERIES)
def test_dictionaries_of_aggregates_are_what_python_computes(name: str) -> None:
    random: Random = drawing()
    db = Database()
    tables = db.table(Row, name="a"), db.table(Row, name="b")
    view = db.query(QUERIES[name](*tables)).materialize()
    held: tuple[list[Row], list[Row]] = ([], [])
    for _ in range(40):
        side = random.randrange(2)
        with db.transaction():
            for _ in range(random.choice((1, 1, 3))):
                if held[side] and random.random() < 0.4:
                    tables[side].remove(held[side].pop(random.randrange(len(held[side]))))
                else:
                    row = Row(random.randrange(4), random.randrange(5))
                    held[side].append(row)
                    tables[side].add(row)
        expected = QUERIES[name](*held)()
        assert dict(view) == expected
        assert {key: view[key] for key in view.keys()} == expected  # noqa: SIM118
        view.verify()
