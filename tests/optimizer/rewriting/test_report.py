"""The part of `explain` about the optimizer, as golden texts."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import cleandoc

import pytest

from optimizer import plan
from optimizer.errors import PlanError
from optimizer.rewriting.report import report
from reactive import Database, Table, fixpoint


@dataclass(frozen=True, slots=True)
class Student:
    name: str
    age: int


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    role: str


def tables(db: Database) -> tuple[Table[Student], Table[Member]]:
    return db.table(Student, name="students"), db.table(Member, name="council")


def has_x(student: Student) -> bool:
    for letter in student.name:  # noqa: SIM110 - a statement that cannot be read
        if letter == "x":
            return True
    return False


def told(text: str) -> str:
    return cleandoc(text)


def test_the_plan_is_shown_before_and_after_with_rules_and_constants() -> None:
    students, council = tables(Database())
    limit = 30
    query = students.join(council).where(lambda s, m: s.name == m.name and s.age > limit)
    assert query.explain() == told("""
        as written
          where s.name == m.name and s.age > 30
            product
              table students
              table council
        optimized
          join on s.name == m.name and s.age > 30
            table students
            table council
        runs as
          probe join s.name == m.name
            where s.age > 30 | index by s.name
              table students
            index by m.name
              table council
        rules: split_where, make_join, merge_where_into_join
        constants: limit = 30
    """)


def test_an_opaque_callable_is_shown_with_its_reason_and_what_would_help() -> None:
    students, _ = tables(Database())
    line = has_x.__code__.co_firstlineno
    assert students.where(has_x).explain() == told(f"""
        as written
          where has_x (test_report.py:{line})
            table students
        runs as
          pipeline where has_x (test_report.py:{line})
            table students
        rules: none
        opaque: has_x (test_report.py:{line}), in where
          a 'for' statement at line {line + 1}
          write it as one expression, or as names, choices and returns
    """)


def test_a_join_that_asks_every_pair_says_so_and_what_would_help() -> None:
    students, council = tables(Database())
    late = students.join(council, on=lambda s, m: s.age / 2 > 60 / len(m.role) and s.name == m.name)
    text = "found by a range: join on s.age / 2 > 60 / len(m.role) and s.name == m.name"
    hint = "an equation comes after a condition that may raise: put it first"
    assert late.explain().endswith(f"{text}\n  {hint}")
    by_range = students.join(council, on=lambda s, m: s.name < m.name)
    assert by_range.explain().endswith("rules: none")
    none = students.join(council, on=lambda s, m: s.name != m.name)
    assert "every pair is asked" in none.explain()
    assert "a join needs `left == right`" in none.explain()
    partly = students.join(council, on=lambda s, m: s.name == m.name or s.age != len(m.role))
    assert "each part of an `or` needs a `left == right`" in partly.explain()
    one_side = students.join(council, on=lambda s, m: s.name == m.name or s.age > 3)
    assert one_side.explain().endswith("rules: split_disjunction")
    far = students.join(council, on=lambda s, m: s.age % len(m.role) < 3)
    assert "a side of `<` reads both rows: write each side over one row" in far.explain()


def test_an_equation_that_reads_both_rows_on_one_side_says_so() -> None:
    students, council = tables(Database())
    sums = students.join(council, on=lambda s, m: len(s.name) * len(m.name) == 12)
    assert "every pair is asked" in sums.explain()
    assert "a side of an equation reads both rows" in sums.explain()


def test_a_recursion_that_is_computed_whole_says_what_may_raise() -> None:
    students, _ = tables(Database())
    pairs = students.select(lambda s: (s.name, s.age))
    counted = fixpoint(
        lambda r: pairs.union(
            r.join(students, on=lambda p, s: p[1] == s.age).select(lambda p, s: (p[0], p[1] + 1))
        )
    )
    whole = counted.where(lambda p: p[0] == "Joe")
    assert "asked of all rows of the recursion: where p[0] == 'Joe'" in whole.explain()
    assert "select (p[0], p[1] + 1) may raise for rows" in whole.explain()
    other = counted.where(lambda p: p[1] == 3)
    assert "asked of all rows" not in other.explain()


def test_without_optimization_the_plan_is_shown_as_it_is_run() -> None:
    students, _ = tables(Database(optimize=False))
    line = has_x.__code__.co_firstlineno
    expected = f"where has_x (test_report.py:{line})\n  table students"
    assert students.where(has_x).explain() == expected


def test_the_generated_code_is_shown_and_runs_as_shown() -> None:
    students, _ = tables(Database())
    view = students.where(lambda s: s.age > 3).select(lambda s: (s.name, s.age * 2)).materialize()
    assert view.explain(code=True) == told("""
        # select (s.name, s.age * 2)
        def step(delta):
            out = []
            append = out.append
            for row, weight in delta:
                age = row.age
                if not age > 3: continue
                value = age * 2
                append(((row.name, (value if value == value else canonical(value))), weight))
            return out
    """)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (lambda node: None, "gave None, not a plan node"),
        (lambda node: plan.Distinct(node), "do not come to an end"),
    ],
)
def test_a_rule_of_the_user_that_cannot_be_right_is_named(rule: object, message: str) -> None:
    students, _ = tables(Database(rules=[rule]))  # type: ignore[list-item]
    with pytest.raises(PlanError, match=message):
        students.where(lambda s: s.age > 3).materialize()


def test_what_is_said_of_several_nodes_in_several_parts_is_said_of_the_highest() -> None:
    db = Database()
    students, _ = tables(db)
    query = students.where(lambda s: s.age > 3).select(lambda s: s.name).distinct()
    found = db._engine.queries.optimize(query.plan)
    drawing = db._engine.queries.running(query.plan).drawing()
    together = report(query.plan, found, drawing, lambda node: "there; in columns")
    apart = report(query.plan, found, drawing, lambda node: "here")
    said = "there; in columns"
    assert [line for line in str(together).splitlines() if line.endswith(said)] == [
        f"distinct: {said}"
    ]
    assert "select s.name: together with distinct" in str(together)
    assert "select s.name: here" in str(apart)
