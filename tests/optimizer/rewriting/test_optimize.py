"""The shape of optimized plans: filters go where they belong, and equal parts are one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from optimizer import plan
from optimizer.expr import Lifted, conjuncts, walk
from optimizer.plans.properties import nodes
from optimizer.rewriting import optimize as module
from optimizer.rewriting.optimize import optimize
from optimizer.traverse import functions, with_functions
from reactive import Database, Max, Relation, Sum, Table
from reactive.engine.operators.index_by import IndexBy
from tests.golden.cases import shown
from tests.golden.tables import NAMES, tables
from tests.written import evaluated


def relation(query: str, db: Database | None = None) -> Relation[Any]:
    made: Relation[Any] = evaluated(query, {**NAMES, **tables(db or Database())})
    return made


def optimized(query: str) -> str:
    return shown(optimize(relation(query).plan).plan)


def test_a_filter_of_the_left_goes_left_and_one_of_the_right_goes_right() -> None:
    assert optimized(
        "students.join(council).where("
        "lambda s, m: s.last_name == m.last_name and s.age > 30 and m.role == 'chair')"
    ) == (
        "join on s.last_name == m.last_name and s.age > 30 and m.role == 'chair'\n"
        "  table students\n"
        "  table council"
    )


def test_a_filter_of_both_sides_stays_for_the_pairs() -> None:
    assert optimized(
        "students.join(council).where(lambda s, m: s.last_name == m.last_name and s.age > m.since)"
    ) == (
        "join on s.last_name == m.last_name and s.age > m.since\n  table students\n  table council"
    )


def test_conditions_find_their_tables_through_joins_of_three() -> None:
    assert optimized(
        "students.join(council).join(alumni).where(lambda s, m, a: a.age == s.age"
        " and m.role == 'chair' and s.last_name == m.last_name and a.first_name == 'Joe'"
        " and s.first_name == 'Sally')"
    ) == (
        "join on a.age == s.age and a.first_name == 'Joe'\n"
        "  join on m.role == 'chair' and s.last_name == m.last_name and s.first_name == 'Sally'\n"
        "    table students\n"
        "    table council\n"
        "  table alumni"
    )


def test_a_filter_goes_through_union_all_and_select_to_the_tables() -> None:
    assert optimized(
        "students.union_all(alumni).select(lambda s: (s.last_name, s.age))"
        ".where(lambda r: r[0] == 'Doe')"
    ) == (
        "select (s.last_name, s.age)\n"
        "  union_all\n"
        "    where s.last_name == 'Doe'\n"
        "      table students\n"
        "    where s.last_name == 'Doe'\n"
        "      table alumni"
    )


def test_a_filter_on_the_key_of_groups_goes_below_them_and_into_the_join() -> None:
    assert optimized(
        "students.join(council, on=lambda s, m: s.last_name == m.last_name)"
        ".group_by(lambda s, m: m.role).aggregate(Count()).where(lambda role, n: role == 'chair')"
    ) == (
        "aggregate Count() by m.role\n"
        "  join on s.last_name == m.last_name and m.role == 'chair'\n"
        "    table students\n"
        "    table council"
    )


def test_a_filter_on_an_aggregate_stays_and_one_on_the_key_passes_it_by() -> None:
    text = optimized(
        "students.group_by(lambda s: s.last_name).aggregate(Count())"
        ".where(lambda name, n: name == 'Doe' and n > 1)"
    )
    assert text == (
        "where n > 1\n"
        "  aggregate Count() by s.last_name\n"
        "    where s.last_name == 'Doe'\n"
        "      table students"
    )


@pytest.mark.parametrize(
    "query",
    [
        "students.where(lambda s: s.age is not None).where(lambda s: s.age > 30)"
        ".where(lambda s: s.last_name == 'Doe')",
        "students.where(lambda s: s.age is not None and s.age > 30 and s.last_name == 'Doe')",
        "students.join(council, on=lambda s, m: s.age is not None and s.age > 30"
        " and s.last_name == 'Doe')",
        "students.distinct().union(alumni).where(lambda s: s.age is not None and s.age > 30"
        " and s.last_name == 'Doe')",
    ],
)
def test_no_test_is_moved_before_the_guard_it_relies_on(query: str) -> None:
    order = ["s.age is not None", "s.age > 30", "s.last_name == 'Doe'"]
    text = optimized(query)
    assert all(text.count(a) == text.count(order[0]) > 0 for a in order)
    assert " and ".join(order) in text


def test_one_and_true_and_one_point_zero_stay_different() -> None:
    db = Database()
    made = tables(db)
    views = [
        evaluated(f"students.select(lambda s: (s.last_name, {one}))", made).materialize()
        for one in ("1", "True", "1.0")
    ]
    made["students"].add(NAMES["Student"]("Sally", "Fields", 31))
    assert [repr(next(iter(view))[1]) for view in views] == ["1", "True", "1.0"]


def test_two_views_with_the_same_join_have_one_pair_of_indexes() -> None:
    db = Database()
    made = {**NAMES, **tables(db)}
    join = "students.join(council, on=lambda s, m: s.last_name == m.last_name)"
    one = evaluated(f"{join}.select(lambda s, m: s.age)", made).materialize()
    before = len(db._engine.graph._nodes)
    two = evaluated(f"{join}.select(lambda s, m: m.role)", made).materialize()
    assert indexes(db) == 2
    assert len(db._engine.graph._nodes) == before + 1
    assert len(one) == len(two) == 0


def test_the_condition_may_be_written_in_several_ways() -> None:
    db = Database()
    made = {**NAMES, **tables(db)}
    views = [
        evaluated(query, made).materialize()
        for query in (
            "students.join(council, on=lambda s, m: s.last_name == m.last_name)",
            "students.join(council).where(lambda x, y: x.last_name == y.last_name)",
        )
    ]
    assert len(db._engine.graph._nodes) == 3
    assert indexes(db) == 2
    assert [len(view) for view in views] == [0, 0]


def test_equal_parts_of_one_query_are_computed_once() -> None:
    part = "students.where(lambda {0}: {0}.age == 31).select(lambda {0}: {0}.last_name).distinct()"
    counts = []
    for query in (part.format("s"), f"{part.format('s')}.union_all({part.format('t')})"):
        db = Database()
        view = relation(query, db).materialize()
        counts.append(len(db._engine.graph._nodes))
        view.close()
    assert counts[1] == counts[0] + 1


def test_what_two_nodes_read_is_not_duplicated_by_filters_of_one() -> None:
    query = (
        "(lambda r: r.where(lambda s, m: s.age > 30).union_all(r.where(lambda s, m: m.since > 30)))"
        "(students.join(council, on=lambda s, m: s.last_name == m.last_name))"
    )
    joins = [n for n in nodes(optimize(relation(query).plan).plan) if isinstance(n, plan.Join)]
    assert len(joins) == 1


def test_a_product_with_a_predicate_asks_of_few_pairs() -> None:
    asked: dict[bool, int] = {}
    for optimize_it in (True, False):
        db = Database(optimize=optimize_it)
        students: Table[tuple[int, int]] = db.table(tuple, name="students")
        council: Table[tuple[int, int]] = db.table(tuple, name="council")
        view = students.join(council).where(lambda s, m: s[0] == m[0]).materialize()
        students.add_all([(n, n) for n in range(200)])
        council.add_all([(n, n) for n in range(200)])
        assert len(view) == 200
        asked[optimize_it] = view.stats().touched
    assert asked[True] * 20 < asked[False]


def test_a_rule_of_the_user_is_one_of_the_rules() -> None:
    def nobody_is_older_than_99(node: plan.Node) -> plan.Node:
        match node:
            case plan.Where(source, Lifted(body)):
                tests = conjuncts(body)
                kept = tuple(t for t in tests if "age" not in repr(t) or "99" not in repr(t))
                return node if kept == tests or kept else source
            case _:
                return node

    query = "students.where(lambda s: s.age <= 99).select(lambda s: s.last_name)"
    db = Database(rules=[nobody_is_older_than_99])
    made = relation(query, db)
    done = db._engine.queries.optimize(made.plan)
    assert shown(done.plan) == "select s.last_name\n  table students"
    assert "nobody_is_older_than_99" in done.fired
    alone = Database(optimize=False, rules=[nobody_is_older_than_99])
    assert "where" in shown(alone._engine.queries.optimize(made.plan).plan)


def test_without_optimizing_the_plan_is_as_written() -> None:
    db = Database(optimize=False)
    made = relation("students.where(lambda s: 1 < 2).distinct().distinct()", db)
    assert db._engine.queries.optimize(made.plan).plan is made.plan


@pytest.mark.long
@pytest.mark.parametrize("step", ["where", "select", "union", "join"])
def test_a_plan_of_a_thousand_levels_is_optimized(step: str) -> None:
    db = Database()
    numbers: Relation[Any] = db.table(int, name="numbers")
    others = db.table(int, name="others")
    made = numbers
    for _ in range(1000):
        match step:
            case "where":
                made = made.distinct().where(lambda n: n != 7)
            case "select":
                made = made.select(lambda n: n)
            case "union":
                made = made.union(others)
            case _:
                made = made.semi_join(others, on=lambda n, m: n == m)
    assert nodes(db._engine.queries.optimize(made.plan).plan)


def test_a_chain_of_selects_does_not_double_with_every_step() -> None:
    numbers: Relation[Any] = Database().table(int, name="numbers")
    once, twice = numbers, numbers
    for _ in range(30):
        once = once.select(lambda n: n + 1)
        twice = twice.select(lambda n: (n, n)).select(lambda p: p[0] + p[1])
    (select, _) = nodes(optimize(once.plan).plan)[::-1]
    assert isinstance(select, plan.Select)
    assert isinstance(select.function, Lifted)
    assert sum(1 for _ in walk(select.function.body)) == 61
    for node in nodes(optimize(twice.plan).plan):
        for function in functions(node):
            assert isinstance(function, Lifted)
            assert sum(1 for _ in walk(function.body)) < 300


@dataclass(frozen=True)
class Visit:
    """A row with a field that is no part of its hash, and has none."""

    place: int
    notes: list[str] = field(hash=False, compare=False)


def test_a_field_without_a_hash_does_not_become_a_row() -> None:
    db = Database()
    visits, places = db.table(Visit, stored=False), db.table(int, name="places")
    joined = visits.join(places, on=lambda v, p: v.place == p)
    view = joined.select(lambda v, p: (len(v.notes), p)).materialize()
    places.add(1)
    visits.add_all([Visit(1, ["a"]), Visit(1, ["a", "b"])])
    assert len(view) == 2


def test_rules_come_to_an_end_where_constants_follow_from_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = relation(
        "alumni.join(students.left_join(council, on=lambda s, m: s.age == m.since),"
        " on=lambda a, r: a.age == r[0].age and r[0].age == r[1].since"
        " and a.age == 31 and r[1].since == 17)"
    ).plan
    done = optimize(node).plan
    monkeypatch.setattr(module, "MOST_PASSES", 12)
    assert optimize(node).plan == done


def indexes(db: Database) -> int:
    """Return the number of indexes that a database keeps."""
    return sum(isinstance(node.operator, IndexBy) for node in db._engine.graph._nodes.values())


@pytest.mark.parametrize(
    "query",
    [
        "students.where(lambda s: s.age > 1).select(lambda s: s.age)",
        "students.unnest(lambda s: [s]).select_many(lambda s, t: [s, t])",
        "students.join(council, left_key=lambda s: s.age, right_key=lambda m: m.role,"
        " on=lambda s, m: True)",
        "students.left_join(council, on=lambda s, m: s.last_name == m.last_name)",
        "students.anti_join(council, on=lambda s, m: s.last_name == m.last_name)",
        "students.group_by(lambda s: s.age).aggregate(Count(), Max(lambda s: s.last_name))",
        "students.order_by(lambda s: s.age)",
        "students.union(students)",
    ],
)
def test_the_callables_of_a_node_are_those_that_can_be_changed(query: str) -> None:
    for node in nodes(relation(query).plan):
        changed: list[Any] = []

        def note(function: Any) -> Any:
            changed.append(function)
            return function

        with_functions(node, note)
        assert functions(node) == changed


def test_an_aggregate_that_reads_nothing_of_pruned_rows_is_computed_of_what_they_are_now() -> None:
    """Also if a loop gives up: the inner one of composed callables reads whole rows."""
    db = Database()
    table: Any = db.table(tuple, name="pairs")
    numbers = table.select_many(lambda r: {r[-1], 1})
    both = numbers.full_join(numbers, left_key=plainly, right_key=lambda n: n)
    made = (
        both.join(both, on=lambda x, y, z: z[1] == y)
        .select(lambda x, y, z: (z[1] if x is not None else x, y))
        .aggregate(Sum(lambda r: (r[0] or 0) * (r[1] or 0)), Max(lambda r: r[1] or 0))
    )
    view = made.materialize()
    assert "prune_join_inputs" in made.explain()
    table.add((2, 2))
    assert list(view) == [(5, 2)]
    table.remove((2, 2))
    assert list(view) == [(0, None)]


def plainly(*row: Any) -> Any:
    return row[0]
