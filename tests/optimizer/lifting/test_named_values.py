"""Names that `:=` gives to values are read as the values, or the callable stays as it is."""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from optimizer.callables.opaque import opaque
from optimizer.expr import Apply, walk
from optimizer.lifting.lift import lift
from reactive import Database
from reactive.engine.codegen.functions import callable_of
from tests.budget import TIMES, drawing
from tests.written import executed


class Row(NamedTuple):
    a: int
    b: int
    name: str


ROWS = (Row(1, 2, "x"), Row(3, 3, "y"), Row(0, 5, ""), Row(7, -2, "z"))
READ = (
    "lambda s: (k := s.a) > 1 and k < 5",
    "lambda s: (k := s.a - s.b) * k",
    "lambda s: [(k := s.a), k + 1][1]",
    "lambda s: s.a > 1 and (k := s.b) > 2 and k < 5",
    "lambda s: (k := s.a) if s.b > 2 else 0",
    "lambda s: k + 1 if (k := s.a) else k",
    "lambda s: (k := s.a) < (n := s.b) and n - k > 1",
    "lambda s: (k := (n := s.a) + 1) + n + k",
    "lambda s: (k := s.a) + (k := k + s.b) + k",
    "lambda s: f'{(k := s.a)}{k}'",
    "lambda s: {(k := s.a): k}[k]",
    "lambda s: (k := s.b / s.a) > 1 or k < 0",
    "lambda s, k=5: (k := s.a) + k",
    "lambda s: (k := s.a) and abs(k - 3) < 2",
    "lambda s: max((k := s.a), k + 1)",
    "def f(s):\n    return (k := s.a) and k > 1\n",
    "def f(s):\n    n = (k := s.a) + 1\n    return k + n\n",
    "def f(s):\n    if (k := s.a) > 1:\n        return k\n    return -k\n",
)
LEFT = (
    "lambda s: (s.a > 1 and (k := s.b) > 2) or k",
    "lambda s: (k if s.a else (k := s.b)) or k",
    "lambda s: s.a < s.b < (k := 3) or k",
    "lambda s: ((k := s.a) and (k := s.b)) or k",
    "lambda s: [k for _ in s.name if (k := s.a)] and k",
    "lambda s: (k := s.a) and (lambda: k)()",
    "lambda s: (s := s.a) and s",
    "lambda s: (k := iter(s.name)) and [*k, *k]",
    "lambda s: (k := [s.a]) and k is k",
    "def f(s):\n    if s.a:\n        k = (n := s.b)\n    else:\n        k = 1\n    return n + k\n",
)


def _outcome(function: Callable[..., Any], row: Row) -> object:
    try:
        return repr(function(row))
    except Exception as error:
        return type(error)


def _lifted(text: str) -> Any:
    """Return the reading of a callable, after a check of equal results."""
    function = executed(text if text.startswith("def") else f"f = {text}\n", {})["f"]
    read = lift(opaque(function, 1, "where"), (Row,))
    fresh = callable_of(type(read)(read.body, read.names, read.origins, 1))
    for row in ROWS:
        assert _outcome(fresh, row) == _outcome(function, row)
    return read


@pytest.mark.parametrize("text", READ)
def test_a_read_of_a_name_is_its_value(text: str) -> None:
    assert not any(isinstance(part, Apply) for part in walk(_lifted(text).body))


@pytest.mark.parametrize("text", LEFT)
def test_a_name_that_may_have_no_value_leaves_the_callable_as_it_is(text: str) -> None:
    (whole,) = [part for part in walk(_lifted(text).body) if isinstance(part, Apply)]
    assert "':='" in whole.reason


QUERIES = (
    "[(o.a, c.b) for o in orders for c in customers if (k := o.a) == c.a and k > 1]",
    "[(k, c.b) for o in orders if (k := o.a) > 1 for c in customers if k == c.a]",
    "[(o.a, d) for o in orders for c in customers if (d := o.a - c.a) == 0 or d == 1]",
    "[(d, c.b) for o in orders for c in customers if 3 > (d := o.b - c.b) and d > -3]",
    "[o.a for o in orders if (k := o.b) > 0 and any(c.a == k for c in customers)]",
    "[sum(c.b for c in customers if c.a == k) for o in orders if (k := o.a)]",
)


@pytest.mark.parametrize("text", QUERIES)
def test_views_of_comprehensions_with_names_are_those_of_lists(text: str) -> None:
    random = drawing()
    for _ in range(20 if TIMES else 4):
        db = Database()
        tables = {name: db.table(Row, name=name) for name in ("orders", "customers")}
        rows: dict[str, list[Row]] = {name: [] for name in tables}
        view = db.query(_query(text, tables)).materialize()
        assert "every pair" not in view.explain()
        for _ in range(25):
            name = random.choice([*tables])
            if rows[name] and random.random() < 0.4:
                tables[name].remove(rows[name].pop(random.randrange(len(rows[name]))))
            else:
                rows[name].append(Row(random.randrange(4), random.randrange(-4, 5), "x"))
                tables[name].add(rows[name][-1])
            assert Counter(view) == Counter(_query(text, rows)())
            view.verify()


def _query(text: str, names: Any) -> Callable[[], Any]:
    source = f"found = lambda: {text}\n"
    file = f"<named {hash(text)}>"
    linecache.cache[file] = (len(source), None, [source], file)
    namespace = dict(names)
    exec(compile(source, file, "exec"), namespace)
    return namespace["found"]  # type: ignore[no-any-return]
