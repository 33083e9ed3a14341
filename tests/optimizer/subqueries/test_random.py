"""Random correlated plans: the rows of nested loops, from scratch and after every commit."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from optimizer import plan
from optimizer.expr import Lifted, has_subquery
from optimizer.plans.properties import bindings, nodes
from optimizer.subqueries.decorrelation import lateral
from optimizer.traverse import functions
from reactive import Database
from reactive.engine.collections.zset import canonical
from reactive.engine.reference.evaluate import evaluate
from tests.budget import seeds
from tests.optimizer.subqueries import plain
from tests.optimizer.subqueries.drawn import Drawing

CASES = int(os.environ.get("SUBQUERY_CASES", "0"))
FIRST = int(os.environ.get("SUBQUERY_FIRST", "0"))
RAISED = (TypeError, ZeroDivisionError, IndexError, AttributeError, ValueError)
SEEDS = range(FIRST, FIRST + CASES) if CASES else seeds(60, share=4)


class Contents:
    """The rows of the tables of a drawing, by themselves."""

    def __init__(self, drawing: Drawing) -> None:
        self._drawing = drawing
        self.rows: dict[str, Counter[Any]] = {kind: Counter() for kind in drawing.tables}

    def of(self, table: plan.Table) -> Any:
        (kind,) = (k for k, t in self._drawing.tables.items() if t.plan == table)
        return list((+self.rows[kind]).items())

    def fill(self, random: Random, size: int) -> None:
        for kind, held in self.rows.items():
            held.clear()
            for _ in range(random.randrange(size + 1)):
                held[canonical(self._drawing.row(kind))] += random.choice((1, 1, 2))


def outcome(make: Callable[[], Any]) -> Any:
    """Return the computed rows, or "raises"."""
    try:
        return Counter({row: n for row, n in make().items() if n})
    except RAISED:
        return "raises"


def asks(node: plan.Node) -> bool:
    """Return True if a callable of the plan has a sub-query."""
    every = [f for part in nodes(node) for f in functions(part)]
    return any(isinstance(f, Lifted) and has_subquery(f.body) for f in every)


def drawn(seed: int, *, calm: bool) -> tuple[Drawing, plan.Node]:
    """A plan with sub-queries."""
    drawing = Drawing(Random(seed), Database(), calm=calm)
    written, _ = drawing.query(3)
    while not asks(written) or len(nodes(written)) > 30:
        written, _ = drawing.query(3)
    return drawing, written


@pytest.mark.long
@pytest.mark.parametrize("calm", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_plans_give_the_rows_of_nested_loops(seed: int, calm: bool) -> None:
    drawing, written = drawn(seed, calm=calm)
    made = plain.without(written)
    assert not asks(made)
    contents = Contents(drawing)
    for size in (0, 1, 4, 7):
        contents.fill(drawing.random, size)
        expected = outcome(lambda: plain.evaluate(written, contents.of))
        assert outcome(lambda: evaluate(made, contents.of, by_definition=False)) == expected


@pytest.mark.long
@pytest.mark.parametrize("calm", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_views_have_the_rows_of_nested_loops_after_every_commit(seed: int, calm: bool) -> None:
    drawing, written = drawn(seed, calm=calm)
    random, contents = drawing.random, Contents(drawing)
    made = plain.without(written)
    if outcome(lambda: plain.evaluate(written, contents.of)) == "raises":
        with pytest.raises(RAISED):
            drawing.tables["Sure"]._new(made).materialize()
        return
    view = drawing.tables["Sure"]._new(made).materialize()
    for _ in range(12):
        before = {kind: Counter(held) for kind, held in contents.rows.items()}
        changes = [_change(random, drawing, contents) for _ in range(random.choice((1, 1, 2, 4)))]
        expected = outcome(lambda: plain.evaluate(written, contents.of))
        try:
            with drawing.db.transaction():
                for table, row, weight in changes:
                    (table.add if weight > 0 else table.remove)(row)
        except RAISED:
            assert expected == "raises"
            contents.rows = before
        else:
            assert Counter(view.snapshot()) == expected
    assert outcome(lambda: evaluate(made, contents.of, by_definition=False)) == Counter(
        view.snapshot()
    )


def _change(random: Random, drawing: Drawing, contents: Contents) -> tuple[Any, Any, int]:
    kind = random.choice([*drawing.tables])
    held = contents.rows[kind]
    weight = -1 if +held and random.random() < 0.4 else 1
    row = random.choice([*+held]) if weight < 0 else canonical(drawing.row(kind))
    held[row] += weight
    return drawing.tables[kind], row, weight


@pytest.mark.long
@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("calm", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_rows_stand_beside_those_that_a_query_has_for_them(
    seed: int, calm: bool, kind: Any
) -> None:
    drawing = Drawing(Random(seed), Database(), calm=calm)
    left, kinds = drawing.query(1)
    arguments, outer = drawing.arguments(drawing.env(kinds))
    query, _ = drawing.query(2, outer)
    made = lateral(
        plain.without(left),
        plain.without(query),
        arguments,
        kind,
        of_no_rows=plain.of_no_rows,
        canonical=canonical,
    )
    contents = Contents(drawing)

    def pairs() -> Counter[Any]:
        found: Counter[Any] = Counter()
        for row, n in plain.evaluate(left, contents.of).items():
            items = (row,) if bindings(left) == 1 else row
            values = plain.values(arguments, items, contents.of)
            others = plain.evaluate(query, contents.of, values)
            width = bindings(query)
            nothing = None if width == 1 else (None,) * width
            beside: Any = others or {nothing: 1} if kind == "left" else others
            for other, m in beside.items():
                found[*items, *((other,) if width == 1 else other)] += n * m
        return found

    for size in (0, 1, 4, 7):
        contents.fill(drawing.random, size)
        assert outcome(lambda: evaluate(made, contents.of, by_definition=False)) == outcome(pairs)
