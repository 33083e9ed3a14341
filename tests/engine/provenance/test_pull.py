"""Rows with wanted values, pulled out of random queries, against those from scratch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given

from optimizer import plan
from optimizer.expr import Item, Parameter, constant
from optimizer.plans.properties import bindings, free, nodes
from reactive import Count, Database, PlanError
from reactive.api.pulling import Questions
from reactive.api.relation import Relation
from reactive.engine.provenance.wanted import Wanted, wanted, wanted_row
from reactive.engine.reference.verify import evaluate_plan
from reactive.errors import VerificationError
from tests.budget import examples
from tests.random_queries.drawn import SEEDS, commit, draw


def questions(db: Database, written: plan.Node) -> Questions:
    return Questions(
        db._engine, written, lambda node: Relation[Any](db._engine, node).materialize()
    )


def evaluated(db: Database, node: plan.Node) -> dict[Any, int]:
    """The rows of a node from scratch, with their weights."""
    found = evaluate_plan(node, lambda table: db._engine.table_of(table)._all())
    return {row: n for row, n in found.items() if n}


@given(seed=SEEDS)
@examples(1_000)
def test_rows_of_every_node_are_those_from_scratch_with_the_wanted_values(seed: int) -> None:
    drawn = draw(seed, steps=3)
    db = Database()
    tables = drawn.open(db)
    asked = questions(db, drawn.relations(tables)[0].plan)
    for made in drawn.script():
        commit(db, tables, made)
        for node in (each for each in nodes(asked.root) if not free(each)):
            expected = evaluated(db, node)
            for some, rows in _questions(node, expected):
                found = asked.pull().rows(node, some)
                assert {row: n for row, n in found.items() if n} == rows, (drawn, node)


def _questions(
    node: plan.Node, rows: dict[Any, int]
) -> Iterator[tuple[list[Wanted], dict[Any, int]]]:
    """Wanted values of a node, of a whole row and of each binding, with the rows that have them."""
    count = bindings(node)
    for row, weight in list(rows.items())[:4]:
        yield [found for found in [wanted_row(row, count)] if found], {row: weight}
        for place in range(count):
            value = row if count == 1 else row[place]
            found = wanted((Parameter(place),), [(value,)])
            if found is not None:
                yield [found], {r: n for r, n in rows.items() if _has(r, place, count, value)}


def _has(row: Any, place: int, count: int, value: Any) -> bool:
    own = row if count == 1 else row[place]
    return own is value or bool(own == value)  # NaN is one object


def test_a_question_is_pushed_to_indexes_of_tables_through_joins_and_groups() -> None:
    db = Database()
    orders = db.table(tuple[int, int, float], name="orders")
    customers = db.table(tuple[int, str], name="customers")
    customers.add_all([(n, f"c{n}") for n in range(1_000)])
    orders.add_all([(n, n % 1_000, 1.0) for n in range(5_000)])
    joined = orders.join(customers, on=lambda o, c: o[1] == c[0])
    totals = joined.group_by(lambda o, c: c[1]).aggregate(Count())
    asked = questions(db, totals.plan)

    def rows_of(name: str) -> Any:
        found = wanted((Parameter(0),), [(name,)])
        return asked.pull().rows(asked.root, [found] if found else [])

    def scanned() -> int:
        return sum(source.scanned for _, source in asked._sources.values() if source)

    assert dict(rows_of("c7")) == {("c7", 5): 1}
    before = scanned()
    assert dict(rows_of("c8")) == {("c8", 5): 1}
    assert scanned() - before < 20


def test_values_without_a_hash_are_looked_for_row_by_row() -> None:
    assert wanted((Parameter(0),), [([1],)]) is None


@pytest.mark.parametrize("value", [1, 1.0, True])
def test_equal_values_are_one(value: Any) -> None:
    db = Database()
    numbers = db.table(object, name="numbers")
    numbers.add_all([1, 2, "1"])
    asked = questions(db, numbers.plan)
    found = wanted((Parameter(0),), [(value,)])
    assert found is not None
    assert dict(asked.pull().rows(asked.root, [found])) == {1: 1}


@given(seed=SEEDS)
@examples(400)
def test_a_sample_of_a_view_is_verified(seed: int) -> None:
    drawn = draw(seed, steps=3)
    db = Database()
    tables = drawn.open(db)
    view = drawn.relations(tables)[0].materialize()
    for made in drawn.script():
        commit(db, tables, made)
        view.verify(sample=5)


def test_a_wrong_row_is_found_by_a_sample() -> None:
    db = Database()
    words = db.table(str, name="words")
    lengths = words.select(len).materialize()
    words.add("to")
    words._store.add("that", 1)  # past the commits
    words._store.remove("to", 1)
    with pytest.raises(VerificationError, match="it has 1 of 2, and the query 0"):
        lengths.verify(sample=3)
    with pytest.raises(PlanError, match="number from 1 on"):
        lengths.verify(sample=0)


class One(NamedTuple):
    id: int


@dataclass(frozen=True)
class Two:
    id: int


@dataclass(frozen=True)
class Three:
    id: int


def test_a_record_of_another_class_is_no_row_of_a_select() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    numbers.add(1)
    asked = questions(db, numbers.select(lambda n: Two(n)).plan)
    for row, count in ((Two(1), 1), (Three(1), 0), (One(1), 0), (None, 0)):
        found = wanted_row(row, 1)
        assert found is not None
        assert asked.pull().rows(asked.root, [found]).total() == count


def test_wanted_values_of_the_same_part_must_agree() -> None:
    db = Database()
    pairs = db.table(tuple[int, int], name="pairs")
    pairs.add_all([(a, b) for a in range(3) for b in range(3)])
    asked = questions(db, pairs.plan)
    first, second = (Item(Parameter(0), constant(place)) for place in (0, 1))
    some = [wanted((first,), [(0,), (1,)]), wanted((first, second), [(1, 2), (2, 2)])]
    found = asked.pull().rows(asked.root, [each for each in some if each is not None])
    assert dict(found) == {(1, 2): 1}
