"""Conditions joined by `&` and `|`: rows and exceptions as plain evaluation has them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Annotated, Any, Literal, NewType

import pytest

from optimizer.expr import Attribute, Operation, Parameter
from optimizer.expressions.simplification import is_boolean
from reactive import Count, Database
from tests.budget import seeds
from tests.thresholds import WAYS, thresholds
from tests.written import evaluated


@dataclass(frozen=True, slots=True)
class Row:
    """`n` is declared as a number, and of some rows is None: asking whether it is less raises."""

    id: int
    k: int
    j: str
    n: int | None
    x: Any


SHAPES = [
    "{0}.k == {1}.k",
    "{1}.j == {0}.j",
    "{0}.n > 1",
    "{1}.n <= 2",
    "{0}.n < {1}.n",
    "{0}.k != 1",
    "{1}.j in ('a', 'b')",
    "{0}.n is not None",
    "{0}.x == {1}.x",
    "({0}.k, {0}.j) == ({1}.k, {1}.j)",
    "{0}.k % 2 == {1}.k % 2",
]


def condition(random: Random, names: tuple[str, str], depth: int) -> str:
    if not depth or random.random() < 0.2:
        return random.choice(SHAPES).format(*random.sample(names, 2))
    one, other = (condition(random, names, depth - 1) for _ in range(2))
    match random.randrange(8):
        case 0:
            return f"({one}) and ({other})"
        case 1:
            return f"({one}) or ({other})"
        case 2:
            return f"(not ({one})) & ({other})"
        case 3 | 4:
            return f"({one}) | ({other})"
        case _:
            return f"({one}) & ({other})"


def queries(random: Random) -> list[str]:
    two = [condition(random, ("s", "m"), random.choice([1, 2, 3])) for _ in range(2)]
    on = f"lambda s, m: {two[0]}"
    three = condition(random, ("s", "z"), 1)
    return [
        f"t.join(u, on={on})",
        f"t.join(u).where({on})",
        f"t.{random.choice(['semi_join', 'anti_join', 'left_join'])}(u, on={on})",
        f"t.where(lambda s: {same(two[1])})",
        f"t.join(u).join(t).where(lambda s, m, z: ({two[1]}) & ({three})).aggregate(Count())",
    ]


def same(text: str) -> str:
    """A condition of one row."""
    return text.replace("m.", "s.")


def row(random: Random, number: int) -> Row:
    n = random.choice([0, 1, 2, 3, 3, None]) if random.random() < 0.3 else random.randrange(4)
    return Row(number, random.randrange(3), random.choice("abc"), n, random.randrange(2))


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", seeds(25, share=5))
def test_rows_and_exceptions_are_those_of_the_query_as_written(way: str, seed: int) -> None:
    random = Random(seed)
    for query in queries(random):
        with thresholds(WAYS[way]), Database(optimize=False) as plain, Database() as fast:
            sides = []
            for db in (plain, fast):
                tables = {name: db.table(Row, name=name) for name in "tu"}
                view = evaluated(query, {**tables, "Count": Count}).materialize()
                sides.append((tables, view))
            held: list[tuple[str, Row]] = []
            for number in range(30):
                if held and random.random() < 0.3:
                    change, (name, one) = "remove", random.choice(held)
                else:
                    change, name, one = "add", random.choice("tu"), row(random, number)
                raised = [tried(tables[name], change, one) for tables, _ in sides]
                assert raised[0] == raised[1], query
                if raised[0] is None:
                    (held.append if change == "add" else held.remove)((name, one))
                slow, quick = (Counter(view.zset().items()) for _, view in sides)
                assert slow == quick, query
            sides[1][1].verify()


def tried(table: Any, change: str, one: Row) -> type | None:
    try:
        getattr(table, change)(one)
    except TypeError as error:
        return type(error)
    return None


class Bits:
    """A number whose comparisons return numbers, and which `&` combines bit by bit."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> Any:
        return 2 if isinstance(other, Bits) and other.value == self.value else 0

    def __hash__(self) -> int:
        return self.value


@dataclass(frozen=True, slots=True)
class Odd:
    id: int
    bits: Bits


def test_what_gives_no_bools_is_joined_as_written() -> None:
    table = Database().table(Odd, name="t")
    query = table.join(table, on=lambda a, b: (a.bits == b.bits) & (a.id == b.id))
    view = query.materialize()
    table.add_all([Odd(1, Bits(3)), Odd(2, Bits(3))])
    assert not len(view)  # 2 & True is 0
    view.verify()
    assert "a.bits == b.bits may be no bool" in str(query.explain())
    both = table.join(table, on=lambda a, b: a.bits == b.bits and a.id == b.id)
    assert len(both.materialize()) == 2


class Color(Enum):
    RED = 1


class Odder(Enum):
    def __eq__(self, other: object) -> Any:
        return 2

    __hash__ = Enum.__hash__


class Strange(Odder):
    RED = 1


Name = NewType("Name", str)


@dataclass(frozen=True)
class Typed:
    whole: int
    maybe: str | None
    money: Decimal
    color: Color
    some: tuple[int, ...]
    name: Name
    noted: Annotated[int, "a note"]
    one_of: Literal["a", 1]
    anything: Any
    items: list[int]
    bits: Bits
    strange: Strange
    number: object


def test_fields_of_built_in_types_compare_with_bools() -> None:
    def gives_bool(name: str) -> bool:
        field = Attribute(Parameter(0), name)
        return is_boolean(Operation("<", (field, field)), (Typed,))

    names = list(Typed.__dataclass_fields__)
    assert [name for name in names if gives_bool(name)] == names[:8]


def test_pairs_that_do_not_match_are_not_looked_at() -> None:
    touched = []
    for size in (100, 10_000):
        db = Database()
        left, right = db.table(Row, name="l"), db.table(Row, name="r")
        view = left.join(
            right, on=lambda a, b: (a.k == b.k) & (a.j == b.j) | (a.id == b.id) & (a.k == b.id)
        ).materialize()
        right.add_all(Row(-n, n, "a", 0, 0) for n in range(1, size))
        left.add(Row(2, 0, "a", 0, 0))  # the first look-up makes the index of the other side
        before = view.stats().touched
        left.add(Row(1, 5, "a", 0, 0))
        touched.append(view.stats().touched - before)
        assert len(view) == 1
    assert touched[0] == touched[1]
