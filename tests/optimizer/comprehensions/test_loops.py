"""Loops that fill a collection are read as the comprehensions that they are."""

from __future__ import annotations

import ast

import pytest

from optimizer.comprehensions.loops import as_expressions

READ = {
    "d = defaultdict(list)\nfor o in orders:\n    d[o.k].append(o.v)": (
        "d = %groups(((o.k, o.v) for o in orders))"
    ),
    "d = collections.defaultdict(set)\nfor o in orders:\n    d[o.k].add(o.v)": (
        "d = %sets(((o.k, o.v) for o in orders))"
    ),
    "d = defaultdict(int)\nfor o in orders:\n    if o.paid:\n        d[o.k] += 1": (
        "d = %sums(((o.k, 1) for o in orders if o.paid))"
    ),
    "x = []\nfor a in t:\n    for b in u:\n        if a == b:\n            x.append(a)": (
        "x = [a for a in t for b in u if a == b]"
    ),
    "x: set[int] = set()\nfor a in t:\n    x.add(a + 1)": "x = {a + 1 for a in t}",
    "x = list()\ny = 3\nfor a in t:\n    x.append(a + y)": "y = 3\nx = [a + y for a in t]",
}

KEPT = (
    "x = []\nfor a in t:\n    x.append(a)\n    x.append(1)",
    "x = []\nfor a in t:\n    x.append(a)\nelse:\n    y = 1",
    "x = set()\nfor a in t:\n    y.add(a)",
    "d = defaultdict(list)\nfor o in orders:\n    d.append(o)",
    "x = []\nfor a in t:\n    x[a].append(a)",
    "for a in t:\n    x.append(a)",
    "x = [1]\nfor a in t:\n    x.append(a)",
    "x = []\nfor a in t:\n    if a:\n        x.append(a)\n    else:\n        x.append(0)",
)


def text_of(statements: str) -> str:
    made = as_expressions(ast.parse(statements).body)
    every = [s for s in made if not isinstance(s, ast.Pass)]
    return "\n".join(map(ast.unparse, every))


@pytest.mark.parametrize(("statements", "expression"), READ.items())
def test_a_loop_that_fills_one_collection_is_an_expression(
    statements: str, expression: str
) -> None:
    assert text_of(statements) == expression


@pytest.mark.parametrize("statements", KEPT)
def test_other_loops_stay(statements: str) -> None:
    assert text_of(statements) == ast.unparse(ast.parse(statements))


def test_what_is_used_between_is_no_empty_collection_any_more() -> None:
    text = "x = []\ny = len(x)\nfor a in t:\n    x.append(a)"
    assert "for a in t:\n" in text_of(text)


def test_a_collection_that_is_filled_twice_is_read_as_one_loop_or_not_at_all() -> None:
    text = "x = []\nfor a in t:\n    x.append(a)\nfor b in u:\n    x.append(b)"
    assert text_of(text).startswith("x = [a for a in t]\nfor b in u:")
