"""Small plans of many shapes, with all rules and with each rule alone, over all small contents.

Among them are the plans that [i3ql] rewrites wrongly, which showed just so.
"""

from __future__ import annotations

import pytest

from optimizer import plan
from optimizer.rewriting.optimize import optimize
from optimizer.rewriting.phases import PHASES
from optimizer.rules.read_callables import read_callables
from reactive import Database
from tests.golden.cases import RULES
from tests.golden.contents import differences
from tests.golden.tables import NAMES, tables
from tests.written import evaluated

UNSOUND_ELSEWHERE = {
    "S6": "students.where(lambda s: s.age == 31).union(students)",
    "S7": "students.difference(alumni).difference(visits.difference(alumni))",
    "P10": "students.join(council).select(lambda s, m: s).distinct()",
    "P10 mirrored": "students.join(council).select(lambda s, m: m).distinct()",
    "P12": "students.select(lambda s: 7).intersection(alumni.select(lambda s: 7))",
    "P13": "students.join(staff).intersection_all(alumni.join(staff))",
    "P14": "students.join(staff, on=lambda s, m: s.age == m.since)"
    ".intersection_all(alumni.join(staff, on=lambda s, m: s.age == m.since))",
    "P15": "students.join(staff).union(alumni.join(staff))",
    "P16": "students.join(staff).union(alumni.join(staff, on=lambda s, m: s.age == m.since))",
    "P18": "students.difference(alumni).union(alumni.difference(visits))",
    "P19": "students.union_all(alumni.difference_all(visits))",
}
ONE_TABLE = (
    "students.where(lambda s: s.age > 30 and s.last_name == 'Doe').where(lambda s: s.age < 40)",
    "students.where(lambda s: s.age is not None).where(lambda s: s.age > 30)",
    "students.where(lambda s: s.last_name == 'Doe' and 2 < 1)",
    "students.where(lambda s: s.age > 30 and 2 < 1)",
    "students.select(lambda s: (s.age, s.age + 1)).where(lambda r: r[0] == 31)",
    "students.select(lambda s: (s.last_name, s.age + 1)).select(lambda r: r[0]).distinct()",
    "students.select(lambda s: s.age + 1).aggregate(Count())",
    "students.select(lambda s: (s.last_name, s.age + 1)).group_by(lambda r: r[0])"
    ".aggregate(Count())"
    ".where(lambda name, count: name == 'Doe')",
    "students.group_by(lambda s: s.age + 1).aggregate(Count())"
    ".where(lambda age, n: age == 32 and n > 1)",
    "students.distinct().where(lambda s: s.age > 30).distinct()",
    "students.distinct().select(lambda s: s.last_name).distinct()",
    "students.distinct().union_all(students).distinct()",
    "students.distinct().difference_all(students.where(lambda s: s.age == 31)).distinct()",
    "students.where(lambda s: s.age > 30).difference(students.where(lambda s: s.age > 30))",
    "students.where(lambda s: s.age > 30).union(students.where(lambda s: s.last_name == 'Doe'))",
    "students.where(lambda s: s.last_name == 'Doe').difference(students"
    ".where(lambda s: s.age > 30))",
    "students.where(lambda s: s.age == 31).intersection_all(students)",
    "students.where(lambda s: 2 < 1).union_all(students.where(lambda s: 1 < 2))",
    "students.where(lambda s: s.age > 30).join(students.where(lambda s: 2 < 1))",
    "pairs.where(lambda r: r[0] == 1 and r[1] == 2)",
    "pairs.where(lambda r: len(r) > 1).where(lambda r: r[1] == 2).select(lambda r: r[1])",
    "pairs.select_many(lambda r: (r[0], r[1])).where(lambda v: v == 2)",
    "pairs.join(pairs, on=lambda a, b: a[1] == b[1] and a[0] == 1)",
    "pairs.semi_join(pairs, on=lambda a, b: b[0] == 2 and a[1] == b[1])",
    "pairs.anti_join(pairs, on=lambda a, b: a[0] == 1 and a[1] != b[1])",
    "students.join(students, on=lambda a, b: a.last_name == b.last_name and a.age < b.age)",
)
TWO_TABLES = (
    "students.join(council).where(lambda s, m: s.last_name == m.last_name and s.age > m.since)",
    "students.join(council).where(lambda s, m: s.age > 30).where(lambda s, m: m.role == 'chair')",
    "students.join(council, on=lambda s, m: m.since > 30 and s.age > 30 and s.last_name == 'Doe')",
    "students.join(council, on=lambda s, m: s.age + 1 == m.since + 1 and m.role != 'chair')",
    "students.join(council, on=lambda s, m: s.age == m.since and m.since == 31)",
    "students.join(council, on=lambda s, m: [s.age] == [m.since])",
    "students.join(council, on=lambda s, m: s.age > m.since).select(lambda s, m: s).distinct()",
    "students.distinct().join(council.distinct(), on=lambda s, m: s.age > 30 and m.since > 30)",
    "students.distinct().join(council, on=lambda s, m: s.age + 1 == m.since"
    " and s.last_name == 'Doe')",
    "students.left_join(council, on=lambda s, m: s.age > 30 and m.since > 30)",
    "students.left_join(council, on=lambda s, m: s.last_name == m.last_name)"
    ".where(lambda s, m: m is not None and m.since > 30)",
    "students.left_join(council, on=lambda s, m: s.age == m.since and m.role == 'chair')"
    ".where(lambda s, m: s.last_name == 'Fields')",
    "students.right_join(council, on=lambda s, m: s.age == m.since)"
    ".where(lambda s, m: m.since > 30)",
    "students.full_join(council, on=lambda s, m: s.age == m.since and m.role == 'chair')",
    "students.full_join(council, on=lambda s, m: s.age == m.since)"
    ".where(lambda s, m: s is not None and s.age == 31)",
    "students.semi_join(council, on=lambda s, m: s.age > 30 and m.since > 30)"
    ".where(lambda s: s.age < 40)",
    "students.semi_join(council, on=lambda s, m: s.age == m.since).where(lambda s: s.age > 30)",
    "students.anti_join(council, on=lambda s, m: s.age == m.since and s.age == 31)",
    "students.anti_join(council, left_key=lambda s: s.age + 1, right_key=lambda m: m.since)"
    ".where(lambda s: s.last_name == 'Doe')",
    "students.union_all(alumni).where(lambda s: s.age > 30 and s.last_name == 'Fields')",
    "students.difference(alumni).where(lambda s: s.age > 30)",
    "students.difference_all(alumni).where(lambda s: s.age > 30).where(lambda s: s.age < 40)",
    "students.intersection(alumni).where(lambda s: s.last_name == 'Fields' and s.age > 30)",
    "students.union_all(alumni).semi_join(students, on=lambda a, b: a.age == b.age"
    " or a.age is None)",
    "(lambda r: r.union_all(r))(students.join(council, on=lambda s, m: s.last_name == m.last_name))"
    ".where(lambda s, m: s.age > 30)",
    "visits.join(staff, on=lambda v, m: v.last_name == m.last_name)"
    ".select(lambda v, m: (v.age, m.role))",
)
THREE_TABLES = (
    "students.join(alumni, on=lambda s, a: s.last_name == a.last_name)"
    ".join(staff, on=lambda s, a, m: m.since == a.age and s.age > 20)",
    "students.semi_join(alumni, on=lambda s, a: s.age == a.age)"
    ".join(staff, on=lambda s, m: s.last_name == m.last_name and s.age > 30)",
)


def plans(node: plan.Node) -> list[plan.Node]:
    """Return the plans that all rules, and each rule alone, make of a plan, if they differ."""
    read = optimize(node, ((read_callables,),)).plan
    alone = [optimize(read, ((rule,),)).plan for rule in RULES.values()]
    return list(dict.fromkeys([read, optimize(node, PHASES).plan, *alone]))


@pytest.mark.long
@pytest.mark.parametrize(
    "query", [*UNSOUND_ELSEWHERE.values(), *ONE_TABLE, *TWO_TABLES, *THREE_TABLES]
)
def test_rules_change_no_row_of_any_small_content(query: str) -> None:
    node = evaluated(query, {**NAMES, **tables(Database())}).plan
    assert differences(node, plans(node)) == []
