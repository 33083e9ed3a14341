"""Queries of any depth and width: more loops than Python nests, more levels than it calls."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from optimizer import plan
from reactive import Database, iterate


@pytest.mark.parametrize("levels", [14, 15, 16, 19, 20, 21, 25, 40])
def test_any_number_of_collections_are_unnested_one_after_the_other(levels: int) -> None:
    table = Database().table(int)
    query: Any = table
    for _ in range(levels):
        query = query.select_many(lambda n: [n] if n % 2 else [n, n + 1])
    view = query.materialize()
    for number in (1, 2):
        table.add(number)
        table.add(number)
        table.remove(number)
    assert sorted(view) == sorted([1] + [2] + [3] * levels)
    view.verify()


@pytest.mark.long
@pytest.mark.parametrize("inputs", [14, 15, 16, 20, 21, 32])
@pytest.mark.parametrize("shape", ["star", "chain"])
def test_any_number_of_inputs_are_joined(inputs: int, shape: str) -> None:
    db = Database()
    tables: list[Any] = [db.table(tuple, name=f"t{n}") for n in range(inputs)]
    query: Any = tables[0]
    for table in tables[1:]:
        if shape == "star":
            query = query.join(table, left_key=lambda *rows: rows[0][0], right_key=lambda r: r[0])
        else:
            query = query.join(table, left_key=lambda *rows: rows[-1][0], right_key=lambda r: r[0])
    view = query.select(lambda *rows: sum(row[1] for row in rows)).materialize()
    for table in tables:
        table.add_all([(key, key) for key in range(5)])
    assert sorted(view) == [key * inputs for key in range(5)]
    tables[inputs // 2].remove((3, 3))
    tables[-1].add((4, 5))
    assert sorted(view) == [0, inputs, 2 * inputs, 4 * inputs, 4 * inputs + 1]
    view.verify()


@pytest.mark.parametrize("inputs", [15, 16, 21])
def test_a_wide_join_whose_conditions_are_read_is_one_with_what_is_above(inputs: int) -> None:
    db = Database()
    tables: list[Any] = [db.table(tuple, name=f"t{n}") for n in range(inputs)]
    query: Any = tables[0]
    for table in tables[1:]:
        query = query.join(table, on=lambda a, b: a[0] == b[0]).select(lambda a, b: a)
    shown = query.select_many(lambda r: [r[0]] * 2).materialize()
    for table in tables:
        table.add_all([(key, key) for key in range(5)])
    tables[1].remove((3, 3))
    assert sorted(shown) == [0, 0, 1, 1, 2, 2, 4, 4]
    shown.verify()


def test_plans_of_any_depth_are_hashed_compared_and_shown() -> None:
    deep, twin, other = (
        _chain(Database().table(int, name=name).plan, 5_000) for name in ("t", "t", "u")
    )
    assert deep == twin and hash(deep) == hash(twin)
    assert deep != other
    assert repr(deep).count("Distinct(") == 5_000


def test_what_is_known_of_a_plan_stays_in_its_process() -> None:
    node = _chain(plan.Empty(1), 50)
    hash(node)
    restored = pickle.loads(pickle.dumps(node))
    assert restored.known == {}
    assert restored == node and hash(restored) == hash(node)


def _chain(node: plan.Node, levels: int) -> plan.Node:
    for _ in range(levels):
        node = plan.Distinct(node)
    return node


def test_what_is_read_twice_at_each_level_is_compared_once() -> None:
    def doubled() -> plan.Node:
        node: plan.Node = plan.Empty(1)
        for _ in range(200):
            node = plan.UnionAll(node, node)
        return node

    assert doubled() == doubled()


def test_a_view_that_reads_itself_twice_at_each_step_is_closed_in_no_time() -> None:
    numbers = Database(optimize=False).table(int, name="numbers")
    view = iterate(lambda r: r.union(r.where(lambda n: n < 3)), numbers, times=60).materialize()
    numbers.add_all([1, 2, 3])
    assert sorted(view) == [1, 2, 3]
    view.close()
    assert numbers._engine.graph.nodes() == []
