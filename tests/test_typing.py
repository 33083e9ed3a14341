"""The types that a user's checker infers. Under mypy the assertions are checked, here they run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from reactive import (
    Count,
    Database,
    GroupedRelation,
    GroupedView,
    Min,
    OrderedView,
    Relation,
    Sum,
    Table,
    View,
    fixpoint,
    iterate,
)


@dataclass(frozen=True, slots=True)
class Student:
    name: str
    age: int


@dataclass(frozen=True, slots=True)
class Member:
    name: str
    role: str


def test_types_follow_the_bindings() -> None:
    db = Database()
    students = db.table(Student)
    members = db.table(Member)
    assert_type(students, Table[Student])
    assert_type(students.where(lambda s: s.age > 3).select(lambda s: s.name), Relation[str])
    joined = students.join(
        members, left_key=lambda s: s.name, right_key=lambda m: m.name, on=lambda s, m: s.age > 3
    )
    assert_type(joined, Relation[Student, Member])
    assert_type(joined.where(lambda s, m: m.role == "x"), Relation[Student, Member])
    assert_type(joined.unnest(lambda s, m: range(s.age)), Relation[Student, Member, int])
    assert_type(joined.select(lambda s, m: (m.role, s.age)), Relation[tuple[str, int]])
    assert_type(students.left_join(members), Relation[Student, Member | None])
    assert_type(students.semi_join(members), Relation[Student])
    assert_type(joined.union(joined), Relation[Student, Member])


def test_types_of_views() -> None:
    db = Database()
    students = db.table(Student)
    assert_type(students.select(lambda s: s.name).materialize(), View[str])
    names = list(students.select(lambda s: s.name).materialize())
    assert_type(names, list[str])
    pairs = list(students.join(students).materialize())
    assert_type(pairs, list[tuple[Student, Student]])
    ordered = students.select(lambda s: s.age).order_by(lambda a: a).limit(3)
    assert_type(ordered.materialize(), OrderedView[int])


def test_types_of_queries_of_views() -> None:
    db = Database()
    students = db.table(Student).where(lambda s: s.age > 3).materialize()
    members = db.table(Member).materialize()
    assert_type(students.where(lambda s: s.age > 3), Relation[Student])
    assert_type(students.where(name="ann"), Relation[Student])
    assert_type(students.join(members, on="name"), Relation[Student, Member])
    assert_type(students | students, Relation[Student])
    assert_type(students.head(2), list[Student])
    assert_type(students.first(), Student | None)
    assert_type(students.first("none"), Student | str)
    assert_type(students.join(members).head(2), list[tuple[Student, Member]])
    ages = students.group_by(lambda s: s.name).aggregate(Count()).materialize()
    assert_type(ages.where(lambda name, n: n > 1), GroupedRelation[str, int])
    assert_type(students.order_by("age").materialize().limit(3).materialize(), OrderedView[Student])


def test_types_of_names() -> None:
    students = Database().table(Student)
    named = students.group_by("name").aggregate(n=Count(), total=Sum("age")).materialize()
    for row in named:
        assert_type(row, Any)
    assert_type(
        students.aggregate(name=Min("name"), age=Min("age"), as_=Student), Relation[Student]
    )


def test_types_of_aggregates() -> None:
    students = Database().table(Student)
    by_name = students.group_by(lambda s: s.name).aggregate(Count())
    assert_type(by_name, GroupedRelation[str, int])
    assert_type(by_name.materialize(), GroupedView[str, int])
    assert_type(by_name.materialize().get("x"), int | None)
    two = students.group_by(lambda s: s.name).aggregate(Count(), Sum(lambda s: s.age))
    assert_type(two, GroupedRelation[str, int, int])
    assert_type(students.aggregate(Count()), Relation[int])


def test_recursive_relations_have_the_type_of_what_the_step_returns() -> None:
    db = Database()
    students = db.table(Student)

    def older(found: Relation[Student]) -> Relation[Student]:
        return students.union(found.select(lambda s: Student(s.name, min(s.age + 1, 99))))

    def both(
        found: Relation[Student], names: Relation[str]
    ) -> tuple[Relation[Student], Relation[str]]:
        return older(found), found.select(lambda s: s.name).union(names)

    assert_type(fixpoint(older), Relation[Student])
    assert_type(fixpoint(older, keep=Min(lambda s: s.age), by=lambda s: s.name), Relation[Student])
    assert_type(fixpoint(lambda found: students.union(found)), Relation[Student])
    assert_type(fixpoint(both), tuple[Relation[Student], Relation[str]])
    adults = iterate(lambda found: found.where(lambda s: s.age > 17), students, times=2)
    assert_type(adults, Relation[Student])
