"""Random queries of one shape, with constants of all kinds, run like each query by itself.

The constants in the callables of a random query become captured variables. Queries with different
values of these are made one after the other: the plan of each and its compiled form are the same as
without templates, and the rows are right after every commit.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from optimizer.rewriting.optimize import optimize
from reactive import Database
from reactive.engine.compiler import queries, templates
from tests.budget import TIMES
from tests.random_queries.drawn import Drawn, commit, draw
from tests.random_queries.names import namespace
from tests.random_queries.written import relation

KINDS = (int, float, str)
OTHERS: dict[type, tuple[Any, ...]] = {
    int: (0, 1, 2, 3, -1, 7),
    float: (0.0, 1.0, 2.5, -0.0, 0.5),
    str: ("", "a", "b", "0"),
}
ROUNDS = 5


class Captured(ast.NodeTransformer):
    """Turn constants in functions into variables, except where the text selects an item."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._depth = 0

    def _inside(self, node: Any) -> Any:
        self._depth += 1
        found = self.generic_visit(node)
        self._depth -= 1
        return found

    visit_Lambda = visit_FunctionDef = _inside

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        node.value = self.visit(node.value)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    def visit_arguments(self, node: ast.arguments) -> Any:
        return node

    def visit_Constant(self, node: ast.Constant) -> Any:
        if not self._depth or type(node.value) not in KINDS:
            return node
        self.values.append(node.value)
        return ast.copy_location(ast.Name(f"k{len(self.values) - 1}", ast.Load()), node)


def callables_of(drawn: Drawn) -> tuple[Callable[..., Any], list[Any]]:
    """Return the constants of a query, and a function that makes its callables with others."""
    captured = Captured()
    tree = captured.visit(ast.parse(drawn.source))
    names = ", ".join(f"k{number}" for number in range(len(captured.values)))
    body = ast.unparse(tree).replace("\n", "\n    ")
    text = f"def make({names}):\n    {body}\n    return locals()\n"
    known = namespace(text, drawn.mode)

    def make(*values: Any) -> dict[str, Any]:
        return {**known, **known["make"](*values)}

    return make, captured.values


def varied(values: list[Any], random: Random) -> list[Any]:
    return [random.choice((v, v, random.choice(OTHERS[type(v)]))) for v in values]


def written(tree: Any) -> str:
    return re.sub("0x[0-9a-f]+", "", repr(tree))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60 * TIMES or 12))
@pytest.mark.parametrize("readers", [0, 16])
def test_queries_of_one_shape_have_the_plans_and_rows_of_their_own(
    seed: int, readers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(templates, "LEARNED_AT", 1)
    monkeypatch.setattr(queries, "MANY_READERS", readers)
    monkeypatch.setattr(queries, "MANY_RANGES", readers)
    templates.SHAPES.clear()
    random, drawn = Random(seed), draw(seed, steps=4)
    make, values = callables_of(drawn)
    views: list[Any] = []
    for number in range(2):  # both databases share their templates
        db = Database()
        tables = drawn.open(db)
        script = iter(drawn.script())
        for _ in range(ROUNDS - 2 * number):
            views += made(db, tables, drawn, make(*varied(values, random)))
            done = next(script, None)
            with suppress(Exception):  # of a callable: nothing has changed
                commit(db, tables, done or [])
            for view in views:
                view.verify()


def made(db: Any, tables: Any, drawn: Drawn, names: Any) -> list[Any]:
    """The view of a query, if it can be made."""
    queries = db._engine.queries
    found = []
    for node in drawn.nodes:
        try:
            asked = relation(node, names, tables)
        except Exception:
            continue
        optimized = optimize(asked.plan, queries.phases)
        chosen = queries._chosen(optimized.plan, None, ()).chosen[id(optimized.plan)]
        try:
            found.append(asked.materialize())
        except Exception:  # of a callable, on rows that are there
            continue
        segment = asked.plan.known["segment"]
        if segment.below:
            continue
        assert segment.run == optimized.plan, str(drawn)
        assert written(segment.run) == written(optimized.plan), str(drawn)
        if segment.physical is not None:
            assert segment.physical == chosen, str(drawn)
            assert written(segment.physical) == written(chosen), str(drawn)
    return found
