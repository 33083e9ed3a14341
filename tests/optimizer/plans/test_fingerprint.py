"""Fingerprints: equal in every process for equal meanings, different for different ones."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from optimizer.plans.fingerprint import fingerprint
from optimizer.rewriting.optimize import optimize
from reactive import Aggregate, Avg, Count, Database, Max, Sum

Query = Callable[[Any], Any]


class Row(NamedTuple):
    a: int
    b: float


class Limits:
    """Values that a query may capture."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.log: Any = sys.stderr

    def allows(self, row: Row) -> bool:
        return any(row.a > self.least for _ in range(1))


def of(query: Query, row_type: Any = Row, name: str = "rows") -> str:
    return fingerprint(optimize(query(Database().table(row_type, name=name)).plan).plan)


def least(limit: Any) -> Query:
    return lambda t: t.where(lambda r: r.a > limit)


def loops(limit: Any) -> Query:
    """Whose callable is none that can be read."""

    def test(r: Any) -> bool:
        return any(r.a == each for each in (limit,))

    return lambda t: t.where(test)


def helped(number: int) -> Query:
    def helper(a: int) -> int:
        return next(iter([a + number]))

    return lambda t: t.select(lambda r: next(map(helper, [r.a])))


class First:
    @dataclass(frozen=True)
    class Order:
        a: int
        b: float


class Second:
    @dataclass(frozen=True)
    class Order:
        a: int
        b: str


class Third:
    @dataclass(frozen=True)
    class Order:
        a: int
        b: float

        @property
        def twice(self) -> int:
            return self.a * 2


def own(zero: int) -> Any:
    return Aggregate(zero=zero, add=lambda s, v: s + v.a, remove=lambda s, v: s - v.a)


DIFFERENT: dict[str, tuple[Query, Query]] = {
    "constant": (least(1), least(2)),
    "type of a constant": (least(1), least(1.0)),
    "sign of zero": (least(0.0), least(-0.0)),
    "constant of what cannot be read": (loops(1), loops(2)),
    "a set": (loops(frozenset("ab")), loops(frozenset("abc"))),
    "a function that is called": (helped(1), helped(2)),
    "a field of an object": (
        lambda t: t.where(Limits(1).allows),
        lambda t: t.where(Limits(2).allows),
    ),
    "code": (lambda t: t.where(lambda r: r.a > 1), lambda t: t.where(lambda r: r.a >= 1)),
    "aggregate": (
        lambda t: t.group_by(lambda r: r.a).aggregate(Sum(lambda r: r.b)),
        lambda t: t.group_by(lambda r: r.a).aggregate(Avg(lambda r: r.b)),
    ),
    "aggregate of one's own": (
        lambda t: t.group_by(lambda r: r.a).aggregate(own(0)),
        lambda t: t.group_by(lambda r: r.a).aggregate(own(1)),
    ),
    "skip_none": (
        lambda t: t.group_by(lambda r: r.a).aggregate(Max(lambda r: r.b)),
        lambda t: t.group_by(lambda r: r.a).aggregate(Max(lambda r: r.b, skip_none=True)),
    ),
    "node": (lambda t: t.distinct(), lambda t: t.union_all(t)),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_means_something_else_has_another_one(case: str) -> None:
    first, second = map(of, DIFFERENT[case])
    assert first != second
    assert (first, second) == tuple(map(of, DIFFERENT[case])), "and the same when made again"


def test_the_fields_and_the_code_of_row_types_count_and_names_of_tables_do() -> None:
    kinds: list[Any] = [First.Order, Second.Order, Third.Order]
    assert len({of(lambda t: t.distinct(), kind) for kind in kinds}) == 3
    renamed = of(lambda t: t.distinct(), First.Order, name="others")
    assert renamed != of(lambda t: t.distinct(), First.Order)


def test_names_of_parameters_views_and_lines_do_not_count() -> None:
    one = of(lambda t: t.where(lambda r: r.a > 1))
    other = of(lambda t: t.where(lambda some: some.a > 1))
    assert one == other
    assert of(loops(1)) == of(loops(1))


def test_a_function_that_calls_itself_ends() -> None:
    def depth(n: int) -> int:
        return 0 if n < 1 else 1 + depth(n - 1)

    assert of(lambda t: t.select(lambda r: depth(r.a))) == of(
        lambda t: t.select(lambda r: depth(r.a))
    )


def test_objects_that_cannot_be_pickled_count_by_their_class() -> None:
    limits = Limits(3)
    assert of(lambda t: t.where(limits.allows)) == of(lambda t: t.where(Limits(3).allows))


SCRIPT = """{lines}
import re
from enum import Enum
from dataclasses import dataclass
from optimizer.plans.fingerprint import fingerprint
from reactive import Aggregate, Count, Database, Sum

class Kind(Enum):
    LARGE = 1

@dataclass(frozen=True)
class Order:
    id: int
    amount: float
    def is_large(self):
        for _ in range(1):
            return self.amount > limit
limit = 10
names = {{"some", "names", "in", "a", "set"}}
pattern = re.compile("a+")
db = Database()
orders = db.table(Order, name="orders")
query = (orders.where(lambda o: o.is_large() and str(o.id) not in names and not pattern.match("b"))
    .group_by(lambda o: (o.id, Kind.LARGE))
    .aggregate(Count(), Sum(lambda o: o.amount),
               Aggregate(zero=0, add=lambda s, o: max([s, o.id]), remove=lambda s, o: s)))
print(fingerprint(query.plan))
"""


@pytest.mark.long
def test_another_process_another_file_and_other_lines_give_the_same(tmp_path: Path) -> None:
    found = set()
    for number in range(3):
        script = tmp_path / f"script{number}.py"
        script.write_text(SCRIPT.format(lines="\n" * number))
        env = {**os.environ, "PYTHONHASHSEED": str(number), "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, env=env, check=True
        )
        found.add(done.stdout)
    assert len(found) == 1
    changed = tmp_path / "changed.py"
    changed.write_text(SCRIPT.format(lines="").replace("> limit", ">= limit"))
    done = subprocess.run(
        [sys.executable, str(changed)], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout not in found


def test_counts_have_no_callable() -> None:
    assert of(lambda t: t.group_by(lambda r: r.a).aggregate(Count()))
