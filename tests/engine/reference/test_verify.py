"""`verify()`: right where the view is right, with work in proportion to the rows, and silent."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimizer import plan
from optimizer.plans.properties import nodes
from reactive import (
    Avg,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Sum,
    Table,
    TableError,
    VerificationError,
    fixpoint,
    iterate,
)
from reactive.engine.codegen import interpret
from reactive.engine.reference import asking as reference_nodes
from reactive.engine.reference import bags as reference_joins
from reactive.engine.reference import evaluate as evaluation
from reactive.engine.reference import keys as reference_keys
from reactive.engine.reference.bags import sum_pairs
from reactive.engine.reference.evaluate import evaluate
from reactive.engine.runtime import progress
from reactive.engine.transactions.transaction import Transaction
from tests.budget import sampled


class Edge(NamedTuple):
    src: int
    dst: int


class Counted:
    """A callable that says how often it was called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self.function(*arguments)


# Sums.


@pytest.mark.parametrize("rows", list(permutations(["0.10", "0.20", "1e30", "-1e30"])))
def test_a_sum_of_decimals_is_exact_in_any_order(rows: tuple[str, ...]) -> None:
    table = Database().table(tuple)
    view = table.group_by(lambda r: r[0]).aggregate(Sum(lambda r: r[1])).materialize()
    for row in rows:
        table.add(("d", Decimal(row)))
    view.verify()
    assert list(view) == [("d", Decimal("0.30"))]


DECIMALS = st.decimals(allow_nan=False, allow_infinity=False, places=3) | st.sampled_from(
    [Decimal(text) for text in ("1e40", "-1e40", "Infinity", "-Infinity", "NaN", "1e-40")]
)
NUMBERS = st.integers(-(2**70), 2**70) | st.booleans() | st.fractions() | st.floats()


@given(
    values=st.lists(st.tuples(DECIMALS | st.integers(-(10**9), 10**9), st.integers(1, 3)))
    | st.lists(st.tuples(NUMBERS, st.integers(1, 3))),
)
def test_sums_and_averages_of_any_numbers_are_those_of_the_view(values: list[Any]) -> None:
    table = Database().table(tuple)
    view = table.aggregate(Sum(lambda r: r[1]), Avg(lambda r: r[1]), Count()).materialize()
    with Transaction(table._engine):
        for number, (value, times) in enumerate(values):
            table.add((number, value), times)
    view.verify()


def test_a_row_that_is_there_often_is_looked_at_once() -> None:
    table, value = Database().table(int), Counted(lambda n: n / 7)
    folds = (Sum(value), Avg(value), Min(value), Max(value), CountDistinct(value), Collect(value))
    view = table.aggregate(Count(), *folds).materialize()
    table.add(3, 10**7)
    value.calls = 0
    view.verify()
    assert value.calls == len(folds)


# Work.

SIZES = (50, 500)
JOINS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "join": lambda a, b, on: a.join(b, on=on),
    "left_join": lambda a, b, on: a.left_join(b, on=on),
    "right_join": lambda a, b, on: a.right_join(b, on=on),
    "full_join": lambda a, b, on: a.full_join(b, on=on),
    "semi_join": lambda a, b, on: a.semi_join(b, on=on),
    "anti_join": lambda a, b, on: a.anti_join(b, on=on),
    "product, where": lambda a, b, on: a.join(b).where(on),
    "join, where": lambda a, b, on: a.join(b, on=lambda x, y: x[1] <= y[1] + 1).where(on),
    "in a recursion": lambda a, b, on: fixpoint(
        lambda r: a.union(r.join(b).where(on).select(lambda x, y: x))
    ),
}
CONDITIONS: dict[str, Callable[[Any, Any, Callable[[Any], Any]], object]] = {
    "equal": lambda x, y, told: told(x)[0] == y[0],
    "equal, tested": lambda x, y, told: told(x)[1] < 1 and y[1] >= 0 and x[0] == y[0],
    "compared before": lambda x, y, told: told(x)[1] <= y[1] and x[0] == y[0],
    "computed": lambda x, y, told: (told(x)[0] + 1, "k") == (1 + y[0], "k"),
    "mixed": lambda x, y, told: float(told(x)[0]) == y[0],
}


def asked(kind: str, condition: str, size: int) -> int:
    """Return how often `verify` reads the left row of a pair."""
    db, told = Database(), Counted(lambda row: row)
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    on = CONDITIONS[condition]
    view = JOINS[kind](a, b, lambda x, y: on(x, y, told)).materialize()
    a.add_all((n, 0) for n in range(size))
    b.add_all((n, n % 3) for n in range(size))
    told.calls = 0
    view.verify()
    return told.calls


@pytest.mark.long
@sampled
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("kind", JOINS)
def test_a_join_asks_of_as_many_pairs_as_there_are_rows(kind: str, condition: str) -> None:
    few, many = (asked(kind, condition, size) for size in SIZES)
    assert many <= 12 * few + 100
    assert many <= 6 * SIZES[1]


@pytest.mark.parametrize("odd", [None, 7, float("nan"), Decimal("sNaN"), "x"])
def test_a_row_that_is_odd_is_paired_with_all_others_and_they_are_not(odd: Any) -> None:
    db, told = Database(), Counted(lambda row: row)
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    view = a.join(b, on=lambda x, y: told(x)[0] // 1 == y[0]).materialize()
    b.add_all((n, 0) for n in range(2_000))
    a.add_all((n, 0) for n in range(2_000))
    told.calls = 0
    view.verify()
    assert told.calls <= 12_000
    a.add((odd, 0)) if isinstance(odd, int | float) else None
    view.verify()


def test_a_filter_of_three_inputs_is_joined_one_after_the_other() -> None:
    table = Database().table(Edge)
    told = Counted(lambda edge: edge)
    triangles = (
        table.join(table)
        .join(table)
        .where(lambda a, b, c: told(a).dst == b.src and b.dst == c.src and c.dst == a.src)
        .materialize()
    )
    table.add_all(Edge(n, n // 3 * 3 + (n + 1) % 3) for n in range(300))
    assert len(triangles) == 300
    told.calls = 0
    triangles.verify()
    assert told.calls <= 3_000


class Alike:
    """Equal to all numbers that leave the same rest by three, so it cannot be looked up."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and other % 3 == self.number % 3


JOINTS: dict[str, Callable[[Any, Any, Any], object]] = {
    "sum": lambda a, b, c: a.src + b.dst == c.src,
    "other way round": lambda a, b, c: c.src == (a.src, b.dst)[0] + b.dst,
    "text": lambda a, b, c: f"{a.src}{b.dst!r:>4}" == f"{c.src}{c.dst!r:>4}",
    "may raise": lambda a, b, c: 12 // abs(a.src - b.dst + 1) == c.src,
    "of what cannot be looked up": lambda a, b, c: Alike(a.src + b.dst) == c.src,
}


@pytest.mark.parametrize("kind", JOINTS)
@pytest.mark.parametrize("before", [True, False])
def test_what_two_rows_give_together_is_looked_up_in_a_third(kind: str, before: bool) -> None:
    db = Database()
    table, joint = db.table(Edge, name="edges"), JOINTS[kind]
    pairs = table.join(table, on=lambda a, b: a.dst == b.src)
    every = pairs.join(table)
    if before:
        view = every.where(lambda a, b, c: b.src != 3).where(joint).materialize()
    else:
        view = every.where(joint).where(lambda a, b, c: b.src != 3).materialize()
    rows = [Edge(n % 7, n % 5 + 1) for n in range(35)]
    if kind == "may raise":
        with pytest.raises(ZeroDivisionError):
            table.add_all(rows)
        rows = [Edge(n % 7, n % 7 + n % 5 + 2) for n in range(35)]
    table.add_all(rows)
    expected = Counter(
        (a, b, c)
        for a in rows
        for b in rows
        if a.dst == b.src
        for c in rows
        if b.src != 3 and joint(a, b, c)
    )
    assert Counter(view) == expected
    view.verify()


@pytest.mark.parametrize(
    "equal",
    [lambda a, b, c: a.src + b.dst == c.src, lambda a, b, c: f"{a.src + b.dst}" == f"{c.src}"],
)
def test_an_equation_of_two_rows_and_a_third_asks_no_more_than_it_has_to(equal: Any) -> None:
    table = Database().table(Edge)
    told = Counted(lambda edge: edge)
    view = (
        table.join(table, on=lambda a, b: a.dst == b.src)
        .join(table)
        .where(equal)
        .where(lambda a, b, c: told(c).dst >= 0)
        .materialize()
    )
    table.add_all(Edge(n, n + 1) for n in range(300))
    assert len(view) == 149
    told.calls = 0
    view.verify()
    assert told.calls <= 3_000


def test_a_semi_join_of_no_condition_asks_for_one_row() -> None:
    db, told = Database(), Counted(lambda row: row)
    a, b = db.table(int, name="a"), db.table(int, name="b")
    views = [a.semi_join(b.select(told)).materialize(), a.anti_join(b.select(told)).materialize()]
    a.add_all(range(3_000))
    every: tuple[range, ...] = (range(0), range(3_000))
    for rows in every:
        b.add_all(rows)
        told.calls = 0
        for view in views:
            view.verify()
        assert told.calls <= 2 * len(rows)
    assert [len(view) for view in views] == [3_000, 0]


def reached(starts: Any, edges: Any, step: Callable[..., Any], **options: Any) -> Any:
    return fixpoint(
        lambda r: starts.union(r.join(edges, on=lambda x, e: x == e.src).select(step)), **options
    )


def itself(node: int) -> int:
    return node


LEAST = Min(itself)


def in_turns(starts: Any, edges: Any, step: Callable[..., Any]) -> tuple[Any, ...]:
    def steps(even: Any, odd: Any) -> tuple[Any, Any]:
        return starts.union(further(odd)), further(even)

    def further(nodes: Any) -> Any:
        return nodes.join(edges, on=lambda x, e: x == e.src).select(step)

    return fixpoint(steps)


def nested(starts: Any, edges: Any, step: Callable[..., Any]) -> Any:
    def inside(outer: Any) -> Callable[[Any], Any]:
        return lambda inner: outer.union(
            inner.join(edges, on=lambda x, e: x == e.src and e.src % 5 > 0).select(step)
        )

    return fixpoint(
        lambda outer: starts.union(fixpoint(inside(outer))).union(
            outer.join(edges, on=lambda x, e: x == e.src and e.src % 5 == 0).select(step)
        )
    )


RECURSIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "fixpoint": reached,
    "keep": lambda starts, edges, step: reached(starts, edges, step, keep=LEAST, by=itself),
    "two relations": lambda starts, edges, step: in_turns(starts, edges, step)[0],
    "nested": nested,
    "iterate": lambda starts, edges, step: iterate(
        lambda r: r.join(edges, on=lambda x, e: x == e.src).select(step), starts, times=100
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("kind", RECURSIONS)
def test_a_recursion_is_followed_and_not_begun_again(kind: str) -> None:
    def calls(size: int) -> int:
        db, step = Database(), Counted(lambda x, e: e.dst)
        edges, starts = db.table(Edge, name="edges"), db.table(int, name="starts")
        view = RECURSIONS[kind](starts, edges, step).materialize()
        starts.add(0)
        edges.add_all(Edge(n, n + 1) for n in range(size))
        step.calls = 0
        view.verify()
        return step.calls

    assert calls(100) <= 500
    assert calls(400) <= 4 * calls(100)


def test_a_long_recursion_within_an_iteration_goes_on_from_where_it_was() -> None:
    db, step = Database(), Counted(lambda x, e: e.dst)
    edges, starts = db.table(Edge, name="edges"), db.table(int, name="starts")
    view = iterate(lambda r: reached(r, edges, step), starts, times=20).materialize()
    starts.add(0)
    edges.add_all(Edge(n, n + 1) for n in range(100))
    step.calls = 0
    view.verify()
    assert step.calls <= 200


# Independence.


def test_a_predicate_that_was_misread_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database()
    a, b = db.table(tuple, name="a"), db.table(tuple, name="b")
    joined = a.join(b, on=lambda x, y: x[0] == y[0])
    three = a.join(b).join(a).where(lambda x, y, z: x[0] == y[0] and y[0] == z[0])
    views = [joined.materialize(), three.materialize()]
    a.add_all((n % 5, n) for n in range(50))
    b.add_all((n % 5, -n) for n in range(50))
    right = interpret.interpret_expr
    monkeypatch.setattr(
        reference_keys,
        "interpret_expr",
        lambda expr, binding: (lambda row: row[1]) if right(expr, binding) else None,
    )
    for view in views:
        view.verify()


AGGREGATES = {
    f"reactive.engine.operators.{module}" for module in ("accumulators", "statistics", "tolerant")
}
"""Modules of the classes that name the aggregates of a plan."""


def test_an_evaluation_takes_nothing_from_operators_and_no_code_that_is_made() -> None:
    import ast
    from pathlib import Path

    files = [*Path(reference_joins.__file__).parent.glob("*.py"), Path(interpret.__file__)]
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.module is not None
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                operators = {
                    name for name in names if name.startswith("reactive.engine.operators.")
                }
                assert operators <= AGGREGATES, file
                assert "build" not in [alias.name for alias in node.names], file


def test_what_is_wrong_in_a_recursion_is_told() -> None:
    db = Database()
    edges, starts = db.table(Edge, name="edges"), db.table(int, name="starts")
    limit = [100]
    step = Counted(lambda x, e: min(e.dst, limit[0]))
    view = reached(starts, edges, step).materialize()
    starts.add(0)
    edges.add_all(Edge(n, n + 1) for n in range(10))
    limit[0] = 5
    with pytest.raises(VerificationError, match="not in the query: 6, 7"):
        view.verify()


def test_a_node_that_nobody_knows_how_to_evaluate_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot evaluate plan node Shared"):
        evaluate(plan.Shared(plan.Empty(1)), lambda table: ())


def test_pairs_of_which_one_row_is_gone_are_not_asked() -> None:
    def differ(x: tuple[str, int], y: tuple[str, int]) -> bool:
        return bool(1 // abs(x[1] - y[1]) >= 0) if x[0] != y[0] else False

    db = Database()
    starts, better = db.table(tuple, name="starts"), db.table(tuple, name="better")
    kept = fixpoint(
        lambda r: starts.union(r.join(better, on=lambda x, b: x == b[0]).select(lambda x, b: b[1])),
        keep=Min(lambda x: x[1]),
        by=lambda x: x[0],
    )
    view = kept.semi_join(kept, on=differ).materialize()
    with db.transaction():
        starts.add_all([("a", 5), ("b", 6)])
        better.add((("b", 6), ("b", 5)))
        better.add((("a", 5), ("a", 4)))
    view.verify()
    assert sorted(view) == [("a", 4), ("b", 5)]


# Depth.


def test_a_query_of_a_thousand_steps_is_evaluated() -> None:
    table: Table[int] = Database().table(int)
    relation: Any = table
    for _ in range(1_000):
        relation = relation.where(lambda n: n > 0)
    assert len(nodes(relation.plan)) == 1_001
    assert evaluate(relation.plan, lambda table: [(0, 1), (7, 2)]) == {7: 2}


# Progress.


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A view that takes steps to verify, and the stream that it may write to."""
    db = Database()
    edges, starts = db.table(Edge, name="edges"), db.table(int, name="starts")
    view = (
        reached(starts, edges, lambda x, e: e.dst)
        .join(edges, on=lambda x, e: x == e.src)
        .materialize("reached")
    )
    starts.add(0)
    edges.add_all(Edge(n, n + 1) for n in range(300))
    monkeypatch.setenv("TERM", "xterm")
    yield view


def test_a_terminal_is_told_what_takes_long(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    watched.verify()
    assert "verifying view 'reached'" in stream.getvalue()


def test_what_takes_less_than_a_second_leaves_the_terminal_alone(
    watched: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    watched.verify()
    assert stream.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_without_a_terminal_nothing_is_written(
    watched: Any, monkeypatch: pytest.MonkeyPatch, stream: Any
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    watched.verify()
    assert stream is None or stream.getvalue() == ""


def test_the_bar_goes_when_a_callable_raises(watched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    table: Table[int] = Database().table(int)
    raises = Counted(lambda n: n)
    view = table.select(raises).materialize()
    table.add(1)
    raises.function = lambda n: n // 0
    with pytest.raises(ZeroDivisionError):
        view.verify()
    assert stream.getvalue().endswith("\x1b[?25h") or "\x1b[?25h" in stream.getvalue()


def test_sums_beside_fractions_are_rounded_once() -> None:
    table = Database().table(tuple)
    view = table.aggregate(Sum(lambda r: r[0])).materialize()
    table.add_all([(0.1,), (Fraction(1, 3),), (10**20,), (-(10**20),)])
    view.verify()


class Call(NamedTuple):
    module: str
    name: str
    rest: str


class Meaning(NamedTuple):
    module: str
    name: str
    full: str


def test_rows_beside_a_whole_query_are_joined_by_the_equations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A query over groups that does not read the outer row is joined, not repeated for each row."""

    def rows_made(size: int) -> int:
        db = Database()
        calls, given = db.table(Call, name="calls"), db.table(Meaning, name="given")
        calls.add_all(Call("m", f"n{n}", f"n{n + 1}") for n in range(size))
        given.add_all(Meaning("m", f"n{n}", f"n{n}") for n in range(size))
        counted = given.group_by(lambda m: (m.module, m.name)).aggregate(Count(), Min("full"))
        once = counted.where(lambda key, count, full: count == 1)
        meanings = once.select(lambda key, count, full: Meaning(*key, full))  # type: ignore[call-arg]
        view = db.query(
            lambda: (
                (c.name, end.full)
                for c in calls
                for b in meanings
                if (b.module, b.name) == (c.module, c.name)
                for end in meanings
                if f".{end.name}" == f".{c.rest}"
            )
        ).materialize()
        assert len(view) == size - 1
        made: list[int] = []

        def noted(pairs: Any) -> Any:
            found = [*pairs]
            made.append(len(found))
            return sum_pairs(found)

        with monkeypatch.context() as patch:
            patch.setattr(reference_nodes, "sum_pairs", noted)
            view.verify()
        return sum(made)

    assert rows_made(200) <= 3 * rows_made(100)


def test_a_database_evaluates_once_what_its_views_share(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database()
    edges, starts = db.table(Edge, name="edges"), db.table(int, name="starts")
    joined = starts.join(edges, left_key=lambda n: n, right_key=lambda e: e.src)
    views = [
        joined.where(lambda n, e: e.dst > 2).materialize(),
        joined.group_by(lambda n, e: n).aggregate(Count()).materialize(),
        joined.order_by(lambda n, e: e.dst).materialize(),
    ]
    starts.add_all(range(5))
    edges.add_all([Edge(n, n + k) for n in range(5) for k in range(3)])
    found: list[Any] = []
    rows_of = reference_nodes.evaluate_node

    def counted(node: plan.Node, *more: Any) -> Any:
        found.append(node)
        return rows_of(node, *more)

    monkeypatch.setattr(evaluation, "evaluate_node", counted)
    db.verify()
    joins = [node for node in found if isinstance(node, plan.Join)]
    found.clear()
    for view in views:
        view.verify()
    assert len(joins) == 1
    assert len([node for node in found if isinstance(node, plan.Join)]) >= 2


def test_a_database_tells_of_each_view_that_differs() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    limit = [3]
    few = numbers.where(Counted(lambda n: n < limit[0])).materialize("few")
    all_of_them = numbers.distinct().materialize("all")
    more = numbers.where(Counted(lambda n: n > limit[0])).materialize("more")
    numbers.add_all(range(6))
    db.verify()
    limit[0] = 4
    with pytest.raises(
        VerificationError, match=r"(?s)few.*missing: 3.*more.*not in the query: 4"
    ) as told:
        db.verify()
    assert "all" not in str(told.value)
    assert len(few) + len(all_of_them) + len(more) == 11


def test_a_database_with_a_table_that_is_not_stored_says_which_view_reads_it() -> None:
    db = Database()
    db.verify()  # there is nothing
    passing = db.table(int, name="passing", stored=False)
    view = passing.where(lambda n: n > 1).materialize("large")
    with pytest.raises(TableError, match=r"cannot verify .*large.*: table 'passing' is not stored"):
        db.verify()
    assert not list(view)
