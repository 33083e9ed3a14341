"""The introductory examples of [i3ql]: a live selection, the average age, and the council join."""

from __future__ import annotations

from dataclasses import dataclass

from reactive import Avg, Database


@dataclass(frozen=True, slots=True)
class Student:
    first_name: str
    last_name: str
    age: int


@dataclass(frozen=True, slots=True)
class Member:
    last_name: str
    role: str


SALLY = Student("Sally", "Fields", 31)
BOB = Student("Bob", "Marley", 20)


def test_figure_1_a_view_of_all_sallies_follows_the_table() -> None:
    students = Database().table(Student)
    students.add(BOB)
    names = students.where(lambda s: s.first_name == "Sally").select(lambda s: s.last_name)
    sallies = names.materialize()
    assert list(sallies) == []
    students += SALLY
    assert list(sallies) == ["Fields"]
    students.update(SALLY, Student("Sally", "Smith", 32))
    assert list(sallies) == ["Smith"]
    students.update(Student("Sally", "Smith", 32), Student("Sara", "Smith", 32))
    assert list(sallies) == []


def test_the_average_age_follows_every_change() -> None:
    students = Database().table(Student)
    average = students.aggregate(Avg(lambda s: s.age)).materialize()
    assert average.value is None
    students.add_all([SALLY, BOB])
    assert average.value == 25.5
    students.remove(SALLY)
    assert average.value == 20.0


def test_the_council_join_pairs_students_with_their_offices() -> None:
    db = Database()
    students, council = db.table(Student), db.table(Member)
    ages = (
        students.join(council, on=lambda s, m: s.last_name == m.last_name)
        .where(lambda s, m: s.age > 18)
        .select(lambda s, m: (m.role, s.age))
    )
    by_role = ages.group_by(lambda r: r[0]).aggregate(Avg(lambda r: r[1])).materialize()
    students.add_all([SALLY, BOB])
    council.add_all([Member("Fields", "chair"), Member("Marley", "member")])
    assert dict(by_role) == {"chair": 31.0, "member": 20.0}
    council.add(Member("Fields", "member"))
    assert by_role["member"] == 25.5
    students.remove(SALLY)
    assert dict(by_role) == {"member": 20.0}
