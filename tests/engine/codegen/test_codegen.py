"""Generated code: its names, its text, and that nothing of it is left behind."""

from __future__ import annotations

import gc
import linecache
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, Sum, Table, fixpoint
from reactive.engine.codegen.functions import OWN, BoundValues, build
from reactive.engine.compiler.templates import SHAPES
from reactive.engine.operators.loops.grouped import GroupLoopRunner
from tests.budget import share_of


def generated() -> set[str]:
    return {name for name in linecache.cache if name.startswith("<reactive ")}


def test_the_text_of_generated_code_goes_with_the_view_and_its_template() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    numbers.add_all(range(5))  # the check of rows is made once for their class
    gc.collect()
    before = generated()
    view = numbers.where(lambda n: n > 1).group_by(lambda n: n % 3).aggregate(Count()).materialize()
    numbers.add_all(range(5))
    assert len(generated() - before) > 0
    view.close()
    del view
    SHAPES.clear()
    gc.collect()
    after = build("after", "def after():\n    return None\n", BoundValues())
    assert generated() <= {*before, after.__code__.co_filename}


def test_functions_of_the_same_text_are_each_in_a_file_of_their_own() -> None:
    """Their code is compiled once, and copied: it learns with whom it deals."""
    text = "def later(x):\n    return lambda: x + more\n"
    made = []
    for more in (1, 2):
        values = BoundValues()
        values.by_name["more"] = more
        made.append(build("later", text, values))
    assert [later(10)() for later in made] == [11, 12]
    codes = [code for later in made for code in (later.__code__, later(0).__code__)]
    assert len({id(code) for code in codes}) == 4
    assert codes[0].co_filename == codes[1].co_filename != codes[2].co_filename
    assert codes[2].co_filename == codes[3].co_filename


class Delta:
    """A class with a name that generated code uses."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Delta) and other.value == self.value


out, append, get, row, weight = 1, 2, 3, 4, 5
"""Names that generated code uses for something else."""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda t: t.select(lambda delta: delta + out + append), [8]),
        (lambda t: t.select(lambda row: row + weight + get), [13]),
        (lambda t: t.where(lambda n: n == row + 1), [5]),
        (lambda t: t.join(t).select(lambda row, weight: row + weight + out), [11]),
        (lambda t: t.join(t, on=lambda key, found: key == found).select(lambda a, b: a + get), [8]),
        (
            lambda t: t.group_by(lambda group: group + row).aggregate(Sum(lambda v: v + out)),
            [(9, 6)],
        ),
        (
            lambda t: t.unnest(lambda n: (n, out)).select(lambda n, element: element + append),
            [7, 3],
        ),
    ],
)
def test_names_of_the_user_and_of_the_code_do_not_meet(
    made: Callable[[Any], Any], expected: list[Any]
) -> None:
    db = Database()
    table = db.table(int, name="t")
    view = made(table).materialize()
    table.add(5)
    assert list(view) == expected
    view.verify()
    table.remove(5)
    assert list(view) == []


def test_what_two_expressions_share_is_evaluated_once() -> None:
    db = Database()
    table = db.table(tuple, name="t")
    view = table.where(lambda r: r[0] * r[1] > 2).select(lambda r: (r[0] * r[1], 0)).materialize()
    assert str(view.explain(code=True)).count("row[0] * row[1]") == 1
    table.add((2, 3))
    assert list(view) == [(6, 0)]


@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (lambda a, b: (a[0], (1, 2)), (1, 2)),
        (lambda a, b: (a[0], 1), 1),
        (lambda a, b: (a[0], -1), -1),
        (lambda a, b: (a[0], "text"), "text"),
        (lambda a, b: (a[0], 1.5), 1.5),
        (lambda a, b: (a[0], (1, (None, -2))), (1, (None, -2))),
        (lambda a, b: (a[0], ()), ()),
        (lambda a, b: (a[0], (1, b[1])), (1, 1)),
        (lambda a, b: (a[0], None), None),
        (lambda a, b: (a[0], True), True),
    ],
)
def test_what_one_query_makes_another_may_compare_by_identity(
    pair: Callable[[Any, Any], Any], expected: Any, optimize: bool
) -> None:
    """No `SyntaxWarning` is raised for the generated comparison, which no user wrote."""
    db = Database(optimize=optimize)
    table, other = db.table(tuple, name="t"), db.table(tuple, name="other")
    pairs = table.join(other, on=lambda a, b: a[0] == b[0]).where(lambda a, b: a[1] < b[1])
    shown = pairs.select(pair)
    some = shown.where(lambda p: p[1] is not None).materialize()
    none = shown.where(lambda p: p[1] is None).select(lambda p: p[0]).materialize()
    table.add((5, 0))
    other.add((5, 1))
    assert list(some) == ([] if expected is None else [(5, expected)])
    assert list(none) == ([5] if expected is None else [])


def test_parameters_may_be_called_what_the_loops_call_their_variables() -> None:
    """A commit that changes both sides runs two loops, and the first leaves the second alone."""
    db = Database()
    a: Table[Any] = db.table(tuple, name="a")
    b: Table[Any] = db.table(tuple, name="b")
    joined = a.join(b, on=lambda left, right: left[0] == right[0])
    view = joined.select(lambda left, right: (left[1], right[1])).materialize()
    with db.transaction():
        a.add_all([(1, ("x", 1)), (2, ("y", 1))])
        b.add_all([(1, (1, ((1, "z"), 1))), (2, (2, ((2, "z"), 1)))])
    view.verify()
    code = str(view.explain(code=True))
    assert "for key, pair in left" in code
    assert not re.search(r"^\s+(left|right), weight = pair", code, re.MULTILINE)


def test_the_text_of_a_function_that_is_gone_goes_when_another_one_is_made() -> None:
    made = build("one", "def one():\n    return 1\n", BoundValues())
    file = made.__code__.co_filename
    del made
    gc.collect()
    assert file in linecache.cache
    build("two", "def two():\n    return 2\n", BoundValues())
    assert file not in linecache.cache


NAMED = """
from reactive import Count, Max, Sum

{name} = Decimal("2.5")
row_class = NamedTuple("row_class", [("kind_", int), ("{field}", int)])

def called(x):
    for _ in range(1):
        pass
    return x + {name}

called.__name__ = "{name}"

def queries(t, u):
    both = t.join(u, on=lambda a, b: a.kind_ == b.kind_)
    three = both.join(t, on=lambda a, b, c: b.{field} == c.kind_ and c.{field} == a.{field})
    return [
        t.group_by(lambda {name}: {name}.kind_).aggregate(
            Count(), Sum(lambda r: r.{field} * {name}), Max(lambda r: (r.{field}, r.{field}))
        ),
        t.where(lambda r: 0 < r.{field} < {name}).select(lambda r: r.{field} * {name}),
        both.where(lambda a, {name}: a.{field} + {name}.{field} > 1).select(
            lambda a, b: (a.{field} * {name}, b.{field} + a.{field})
        ),
        both.group_by(lambda a, b: b.{field} + {name}).aggregate(
            Sum(lambda a, b: a.{field} * b.{field} * {name})
        ),
        three.where(lambda a, b, c: a.{field} + c.{field} > {name}).aggregate(
            Count(), Sum(lambda a, b, c: c.{field} * {name})
        ),
        t.select(lambda r: r.{field}).group_by(called).aggregate(Count()),
    ]
"""


NAMES = (*sorted(n for n in OWN if n == n.lower()), "times_0", "row1", "int", "len", "min")


@pytest.mark.long
@pytest.mark.parametrize("name", share_of(NAMES, "names"))
def test_what_a_query_names_is_none_of_the_variables_of_the_code(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(GroupLoopRunner, "_do_plainly")
    file = tmp_path / "query.py"
    file.write_text(NAMED.format(name=name, field=name))
    place: dict[str, Any] = {"Decimal": Decimal, "NamedTuple": NamedTuple, "__name__": "query"}
    exec(compile(file.read_text(), file, "exec"), place)
    db, kind = Database(), place["row_class"]
    one, other = db.table(kind, name="one"), db.table(kind, name="other")
    views = [query.materialize() for query in place["queries"](one, other)]
    for table in (one, other):
        table.add_all([kind(n % 3, n % 4) for n in range(12)])
    one.remove(kind(1, 1))
    for view in views:
        view.verify()
        assert len(view) > 0


ROWS_OF_ONE: dict[str, Callable[[Any, Any], Any]] = {
    "chain": lambda a, b: a.where(lambda x: x[0] > 1).select(lambda x: x[1]),
    "groups": lambda a, b: a.group_by(lambda x: x[0]).aggregate(Sum(lambda x: x[1]), Count()),
    "join": lambda a, b: a.join(b, on=lambda x, y: x[0] == y[0]).select(lambda x, y: (x[1], y[1])),
    "left join": lambda a, b: a.left_join(b, on=lambda x, y: x[0] == y[0]),
    "sums": lambda a, b: (
        a.join(b, on=lambda x, y: x[0] == y[0])
        .group_by(lambda x, y: y[1])
        .aggregate(Sum(lambda x, y: x[1]))
    ),
    "closure": lambda a, b: fixpoint(
        lambda reach: a.union(
            reach.join(b, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    ),
}


@pytest.mark.parametrize("kind", ROWS_OF_ONE)
def test_no_commit_of_a_row_waits_for_code(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database()
    a, b = db.table(tuple[int, int], name="a"), db.table(tuple[int, int], name="b")
    view = ROWS_OF_ONE[kind](a, b).materialize()

    made: list[str] = []

    def noted(code: Any, known: Any, name: str) -> Any:
        made.append(name)
        return FunctionType(code, known, name)

    monkeypatch.setattr("reactive.engine.codegen.functions.FunctionType", noted)
    a.add((1, 2))
    b.add((1, 2))
    b.add((2, 3))
    a.remove((1, 2))
    assert not made
    view.verify()


@pytest.mark.parametrize("kind", ROWS_OF_ONE)
def test_the_last_result_of_a_session_is_no_name_of_the_code(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins._", 3, raising=False)
    db = Database()
    a, b = db.table(tuple[int, int], name="a"), db.table(tuple[int, int], name="b")
    view = ROWS_OF_ONE[kind](a, b).materialize()
    a.add_all([(1, 2), (2, 3)])
    b.add((1, 2))
    view.verify()
