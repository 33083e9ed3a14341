"""Queries that differ in constants are planned once; each has the plan and the rows of its own."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import pytest

from optimizer.plans.substitution import UnknownPlace, substitution
from optimizer.rewriting.optimize import optimize
from reactive import Count, Database, StaleCaptureError, Sum, live
from reactive.engine.codegen import functions
from reactive.engine.compiler import queries, templates
from reactive.engine.compiler.chooser import parameterize_query
from tests.budget import TIMES
from tests.counted_calls import calls_of


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    customer: Any
    amount: Any


LEAST = 2
Query = Callable[[Any, Any, Any], Any]


def looped(t: Any, c: Any, d: Any) -> Any:
    return t.where(lambda o, c=c: o.customer == c).where(lambda o, d=d: o.amount > d)


QUERIES: dict[str, Query] = {
    "an equation": lambda t, c, d: t.where(lambda o: o.customer == c),
    "behind a condition": lambda t, c, d: t.where(lambda o: o.amount > 1 and o.customer == c),
    "two constants": lambda t, c, d: t.where(lambda o: o.customer == c and o.amount > d),
    "two of a field": lambda t, c, d: t.where(lambda o: o.customer == c or o.customer == d),
    "both of a field": lambda t, c, d: t.where(lambda o: o.customer == c and o.customer == d),
    "one of two": lambda t, c, d: t.where(lambda o: o.customer in (c, d)),
    "one of two, and computed": lambda t, c, d: t.where(lambda o: o.customer in (c, d * 2)),
    "beside a literal": lambda t, c, d: t.where(lambda o: o.customer == 1 or o.customer == c),
    "a global": lambda t, c, d: t.where(lambda o: o.amount > LEAST and o.customer == c),
    "defaults": looped,
    "divided": lambda t, c, d: t.where(lambda o: o.amount / c > d),
    "arithmetic": lambda t, c, d: t.where(lambda o: o.amount > c + d),
    "arithmetic beside what it may equal": lambda t, c, d: t.where(
        lambda o: o.amount == c + 1 or o.amount == d * 1 or o.customer == d or o.customer == 2
    ),
    "arithmetic of what was computed": lambda t, c, d: (
        t.where(lambda o: o.customer == -(c + 1) * 2)
        .select(lambda o: (o.id, o.amount, c - d))
        .where(lambda r: r[1] < r[2] + d and r[1] != c + 1)
    ),
    "negated": lambda t, c, d: t.where(lambda o: not (o.customer == c and o.id > 1)),
    "constants alone": lambda t, c, d: t.where(lambda o: c == d or o.customer == c),
    "as a truth": lambda t, c, d: t.where(lambda o: c and o.customer == d),
    "shown": lambda t, c, d: t.where(lambda o: o.customer == c).select(lambda o: (o.id, d)),
    "compared with what is shown": lambda t, c, d: t.select(lambda o: (o.id, c)).where(
        lambda r: r[1] == d
    ),
    "in order with what is shown": lambda t, c, d: t.select(lambda o: (o.id, c)).where(
        lambda r: r[1] < d
    ),
    "summed": lambda t, c, d: t.where(lambda o: o.customer == c).aggregate(Sum(lambda o: o.id)),
    "grouped": lambda t, c, d: (
        t.where(lambda o: o.customer == c).group_by(lambda o: o.amount).aggregate(Count())
    ),
    "a constant per group": lambda t, c, d: t.group_by(lambda o: o.customer == c).aggregate(
        Sum(lambda o: o.id * 3), Count()
    ),
    "joined": lambda t, c, d: t.where(lambda o: o.customer == c).join(
        t, on=lambda a, b: a.amount == b.amount and b.id > d
    ),
    "kept alone": lambda t, c, d: t.left_join(
        t, on=lambda a, b: a.customer == b.amount and b.id == c
    ).where(lambda a, b: b is None or b.customer != d),
    "united": lambda t, c, d: (
        t.where(lambda o: o.customer == c) | t.where(lambda o: o.customer == d)
    ),
    "without": lambda t, c, d: (
        t.where(lambda o: o.customer == c) - t.where(lambda o: o.amount == d)
    ),
    "ordered": lambda t, c, d: t.where(lambda o: o.customer == c).order_by(lambda o: o.id).limit(2),
    "not read": lambda t, c, d: t.where(lambda o: any(x == c for x in (o.customer, o.amount))),
    "a text": lambda t, c, d: t.where(lambda o: f"{o.customer}{c}" != f"{d}"),
    "a function": lambda t, c, d: t.where(lambda o: _is(o, c)).where(lambda o: o.amount != d),
}
VALUES = (0, 1, 2, 1.0, 2.5, True, None, "a", "", -0.0, float("nan"), (1,), 10**20, b"a")


def _is(order: Order, customer: Any) -> bool:
    return bool(order.customer == customer)


@pytest.fixture(params=["as shipped", "at once"], autouse=True)
def learned(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    templates.SHAPES.clear()
    if request.param == "at once":
        monkeypatch.setattr(templates, "LEARNED_AT", 1)
        monkeypatch.setattr(queries, "MANY_READERS", 0)
        monkeypatch.setattr(queries, "MANY_RANGES", 0)
    return str(request.param)


def outcome(act: Callable[..., Any], *given: Any) -> Any:
    try:
        return act(*given)
    except Exception as error:
        return type(error)


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_they_show_and_raise_what_they_would_as_written(name: str) -> None:
    random = Random(name)
    pairs = [*product(VALUES[:6], repeat=2), *product(VALUES, VALUES[:3])]
    pairs += [*((value, value) for value in VALUES), (-0.0, 0.0), (0.0, -0.0), (0, -0.0)]
    random.shuffle(pairs)
    tables = [Database(optimize=optimize).table(Order) for optimize in (True, False)]
    rows = [Order(n, random.choice(VALUES), random.choice(VALUES[:5])) for n in range(12)]
    for table in tables:
        table.add_all(rows)
    views: list[tuple[Any, Any]] = []
    for c, d in pairs[: 60 if TIMES else 18]:
        made = [outcome(made_of, name, table, c, d) for table in tables]
        if isinstance(made[1], type):
            assert made[0] is made[1]
            continue
        views.append((made[0], made[1]))
        assert rows_of(made[0]) == rows_of(made[1]), (c, d)
    for number in range(20 if TIMES else 6):
        row = Order(100 + number, random.choice(VALUES), random.choice(VALUES))
        done = [outcome(table.add, row) for table in tables]
        assert done[0] == done[1]
        for ours, theirs in views:
            assert rows_of(ours) == rows_of(theirs)


def made_of(name: str, table: Any, c: Any, d: Any) -> Any:
    return QUERIES[name](table, c, d).materialize()


def rows_of(view: Any) -> list[str]:
    return sorted(map(repr, view))


def long_way(queries: Any, written: Any) -> tuple[Any, Any]:
    """The plan of a query and how it is run, without templates."""
    optimized = optimize(written, queries.phases)
    return optimized, queries._chosen(optimized.plan, None, ()).chosen[id(optimized.plan)]


def written(tree: Any) -> str:
    return re.sub("0x[0-9a-f]+", "", repr(tree))


def made_by_template(queries: Any, act: Callable[[], Any]) -> tuple[Any, bool]:
    """Return the result of `act`, and True if nothing had to be optimized for it."""
    planned = queries._templates._planned
    called: list[Any] = []

    def noted(written: Any) -> Any:
        called.append(written)
        return planned(written)

    queries._templates._planned = noted
    try:
        return act(), not called
    finally:
        queries._templates._planned = planned


@pytest.mark.long
@pytest.mark.parametrize("name", QUERIES)
def test_the_plan_of_a_template_is_the_plan_of_the_query(name: str) -> None:
    random = Random(name)
    table = Database().table(Order)
    queries, used, held = table._engine.queries, 0, []
    for _ in range(60 if TIMES else 18):
        c, d = random.choice(VALUES[:6]), random.choice(VALUES[:6])
        relation = QUERIES[name](table, c, d)
        optimized, physical = long_way(queries, relation.plan)
        view, is_known = made_by_template(queries, relation.materialize)
        used += is_known
        held.append(view)
        segment = relation.plan.known["segment"]
        assert segment.run == optimized.plan and written(segment.run) == written(optimized.plan)
        assert segment.optimized_plan.fired == optimized.fired
        if segment.physical is not None:  # a table is there already
            assert segment.physical == physical
            assert written(segment.physical) == written(physical)
    assert used or name in NO_TEMPLATES


NO_TEMPLATES: set[str] = set()


@pytest.mark.long
def test_the_hundredth_of_a_shape_takes_a_fraction_of_the_calls_of_the_first() -> None:
    for name in ("an equation", "behind a condition", "summed", "shown", "two constants"):
        table = Database().table(Order)
        views = [QUERIES[name](table, n, 3).materialize() for n in range(17)]
        ask = QUERIES[name]
        new = Database(rules=[lambda node: node]).table(Order)  # which has no templates
        views += [ask(new, n, 3).materialize() for n in range(17)]

        def make(table: Any, number: int, views: list[Any] = views, ask: Query = ask) -> None:
            views.append(ask(table, number, 3).materialize())

        for number in range(17, 60):
            make(table, number)
        ours = calls_of(lambda: make(table, 99))
        assert abs(ours - calls_of(lambda: make(table, 100))) < 50
        assert ours * 1.5 < calls_of(lambda: make(new, 99)), name


@pytest.mark.parametrize("value", [3, 2.5, "a", b"a"])
def test_the_code_of_queries_that_differ_in_constants_is_compiled_once(value: Any) -> None:
    table = Database().table(Order)

    def made(c: Any) -> Any:
        return table.where(lambda o: o.amount != c).group_by(lambda o: o.id).aggregate(Count())

    views = [made(value).materialize()]
    compiled = functions._code.cache_info().misses
    views += [made(value * n).materialize() for n in range(2, 9)]
    assert functions._code.cache_info().misses == compiled
    table.add_all([Order(n, 1, value * n) for n in range(1, 9)])
    for view in views:
        view.verify()
        assert len(view) == 7


def test_a_view_is_right_when_the_index_of_its_template_is_gone() -> None:
    db = Database()
    table = db.table(Order)
    for _ in range(3):
        views = [QUERIES["an equation"](table, n, 0).materialize() for n in range(30)]
        table.add(Order(1, 3, 4))
        assert [len(view) for view in views[:5]] == [0, 0, 0, len(table), 0]
        del views
        gc.collect()
        assert not db._engine.graph.nodes()


def test_a_changed_variable_of_a_view_from_a_template_is_told() -> None:
    table = Database(strict=True).table(Order)

    def made(value: int) -> tuple[Any, Callable[[], None]]:
        view = table.where(lambda o: o.customer == value and o.amount > 0).materialize()

        def change() -> None:
            nonlocal value
            value = -1

        return view, change

    queries = table._engine.queries
    views = [made(value) for value in range(35)]
    last, is_known = made_by_template(queries, lambda: made(35))
    assert is_known
    views.append(last)
    table.add(Order(0, 35, 1))
    views[35][1]()
    with pytest.raises(StaleCaptureError, match="value"):
        table.add(Order(1, 35, 1))


def test_equal_queries_share_their_operators_also_by_a_template(learned: str) -> None:
    table = Database().table(Order)
    graph = table._engine.graph
    views = [QUERIES["two constants"](table, n, 3).materialize() for n in range(60)]
    count = len(graph.nodes())
    views += [QUERIES["two constants"](table, n, 3).materialize() for n in range(30, 60)]
    assert len(graph.nodes()) == count and len(views) == 90


def test_chains_that_do_the_same_have_one_loop_by_a_template() -> None:
    table = Database().table(Order)
    graph = table._engine.graph
    views = [QUERIES["behind a condition"](table, n, 0).materialize() for n in range(40)]
    loops = {node.operator._loop for node in graph.nodes() if hasattr(node.operator, "_loop")}
    assert len(loops) <= 17
    table.add_all([Order(n, n, n % 3) for n in range(40)])
    assert [len(view) for view in views] == [n % 3 == 2 for n in range(40)]


def test_chains_that_do_the_same_have_one_loop_while_an_operator_runs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(templates, "MOST_TEMPLATES", 0)
    table = Database().table(Order)
    graph = table._engine.graph
    views = [QUERIES["behind a condition"](table, n, 0).materialize() for n in range(40)]
    loops = {node.operator._loop for node in graph.nodes() if hasattr(node.operator, "_loop")}
    assert len(loops) <= 17 and set(graph.loops.values()) == loops
    table.add_all([Order(n, n, n % 3) for n in range(40)])
    assert [len(view) for view in views] == [n % 3 == 2 for n in range(40)]
    del views, loops
    gc.collect()
    assert not graph.loops


def test_templates_hold_no_values_that_queries_captured() -> None:
    class Text(str):
        __slots__ = ("__weakref__",)

    table = Database().table(Order)
    values = [Text(n) for n in range(30)]
    gone = [weakref.ref(value) for value in values]
    for value in values:
        QUERIES["defaults"](table, value, 3).materialize().close()
    del values, value
    gc.collect()
    assert not any(reference() is not None for reference in gone)


def test_a_query_of_other_tables_of_the_kind_is_made_by_the_template() -> None:
    def made(*tables: Any) -> Any:
        return (
            tables[0]
            .join(tables[1], on=lambda a, b: a.amount == b.id)
            .where(lambda a, b: a.customer != limit)
        )

    limit = 3
    db = Database()
    tables = [db.table(Order, name=name) for name in ("east", "west", "north")]
    queries = db._engine.queries
    views = [made(*pair).materialize() for pair in (tables[:2], tables[:2], tables[:2])]
    for pair in ((tables[2], tables[1]), (tables[1], tables[2])):
        asked = made(*pair)
        optimized, physical = long_way(queries, asked.plan)
        view, is_known = made_by_template(queries, asked.materialize)
        views.append(view)
        segment = asked.plan.known["segment"]
        assert is_known and segment.run == optimized.plan and segment.physical == physical
        assert pair[0].plan.name in asked.explain() and "east" not in asked.explain()
    views.append(made(tables[0], tables[0]).materialize())
    for number, table in enumerate(tables):
        table.add_all([Order(number, c, a) for c in (1, 3) for a in range(3)])
    for view in views:
        view.verify()


def test_templates_serve_other_databases_and_hold_none() -> None:
    def made(db: Any, limit: Any) -> Any:
        table = db.table(Order)
        table.add(Order(1, 2, 3))
        return table.where(lambda o: o.amount > limit).select(lambda o: (o.id, limit))

    for limit in (1, 2, 2.5, 1.5):
        made(Database(), limit).materialize()
    db = Database()
    view, is_known = made_by_template(db._engine.queries, made(db, 0).materialize)
    assert is_known and list(view) == [(1, 0)]
    gone = weakref.ref(db._engine)
    del db, view
    gc.collect()
    assert gone() is None


OF_A_DATABASE: dict[str, Any] = {
    "table": lambda db, t, n: t,
    "where": lambda db, t, n: t.where(lambda o: o.amount > n),
    "join": lambda db, t, n: t.join(t, on=lambda a, b: a.id == b.id and b.amount > n),
    "sub-query": lambda db, t, n: t.where(lambda o: any(p.id == o.id + n for p in t)),
    "comprehension": lambda db, t, n: db.query(lambda: [o for o in t if o.amount > n]),
    "dictionary": lambda db, t, n: db.query(lambda: {o.id: o.amount + n for o in t}),
    "live": lambda db, t, n: live(o.id for o in t if o.amount > n),
}


@pytest.mark.long
@pytest.mark.parametrize("name", OF_A_DATABASE)
def test_a_database_goes_when_nobody_has_it_whatever_was_learned_of_its_queries(name: str) -> None:
    def made(limit: int) -> list[weakref.ref[Any]]:
        db = Database()
        table = db.table(Order, name="orders")
        view = OF_A_DATABASE[name](db, table, limit).materialize()
        table.add(Order(1, 2, 3))
        return [weakref.ref(each) for each in (db, db._engine, table, view)]

    for limit in (1, 2, 3, 4):
        gone = made(limit)
        gc.collect()
        assert [each() for each in gone] == [None] * 4


def test_what_captures_an_object_of_no_known_meaning_has_no_shape() -> None:
    table = Database().table(Order)
    thing = object()
    assert parameterize_query(table.where(lambda o: o.customer is thing).plan) is None
    view = table.where(lambda o: o.amount > 1).materialize()
    assert parameterize_query(view.where(lambda o: o.customer == 3).plan) is None


def shapes_of(queries: list[Any]) -> Iterator[Any]:
    for query in queries:
        found = parameterize_query(query.plan)
        assert found is not None
        yield found.shape


def test_the_class_of_a_constant_and_which_are_equal_are_part_of_a_shape() -> None:
    table = Database().table(Order)
    ask = QUERIES["two of a field"]
    pairs = [(1, 2), (3, 4), (1, 1), (1.0, 2), (1.0, 1), (True, 2), (None, 2)]
    one, other, *others = shapes_of([ask(table, c, d) for c, d in pairs])
    assert one == other
    assert len({one, *others}) == 6


def test_substitution_shares_what_has_no_place_in_it_and_refuses_what_it_cannot_look_into() -> None:
    mark, kept = object(), Order(1, 2, 3)
    make = substitution(Order(1, (kept, mark), kept), {id(mark): 0})
    made = make((7,))
    assert made == Order(1, (kept, 7), kept) and made.amount is kept
    with pytest.raises(UnknownPlace):
        substitution(Order(1, object(), mark), {id(mark): 0})
    with pytest.raises(UnknownPlace):
        substitution(Order(1, [mark], 2), {id(mark): 0})


def is_planned_by_itself(view: Any) -> bool:
    return bool(view.relation.plan.known["segment"].is_optimized)


def test_what_is_computed_of_constants_differs_between_queries_of_a_shape() -> None:
    table = Database().table(Order)
    table.add_all([Order(n, n, n) for n in range(40)])
    numbers, d = range(10, 15), 2.5

    def between(n: int) -> Any:
        return table.where(lambda o: n + 1 < o.amount < n + d * 2).materialize()

    views = [between(n) for n in numbers]
    assert not any(map(is_planned_by_itself, views[1:]))
    assert [[o.id for o in view] for view in views] == [[*range(n + 2, n + 5)] for n in numbers]


def test_what_was_computed_and_equals_another_constant_is_planned_by_itself() -> None:
    table = Database().table(Order)
    pairs = ((21, 34), (22, 36), (23, 38), (23, 33), (2**64 - 1, 31), (25, 37))

    def beyond(c: int, d: int) -> Any:
        return table.where(lambda o: o.amount > c + 10 and o.customer != d).materialize()

    views = [beyond(c, d) for c, d in pairs]
    assert [*map(is_planned_by_itself, views[1:])] == [False, False, True, True, False]
