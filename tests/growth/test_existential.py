"""An input of which only the presence matters neither widens a look-up nor repeats rows."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database, fixpoint
from tests.budget import seeds


class Points(NamedTuple):
    variable: str
    heap: str


class Load(NamedTuple):
    to: str
    base: str
    field: str


class Instance(NamedTuple):
    heap: str
    kind: str


class Member(NamedTuple):
    kind: str
    name: str
    function: str


Query = Callable[[Any, Any, Any, Any], Any]


def called(points: Any, load: Any, instance: Any, member: Any) -> Any:
    """Pair variables with the members that they load: of instances, nothing is read."""
    return (
        points.join(load, on=lambda p, o: p.variable == o.base)
        .join(instance, on=lambda p, o, i: p.heap == i.heap)
        .join(member, on=lambda p, o, i, m: i.kind == m.kind and m.name == o.field)
        .select(lambda p, o, i, m: Points(o.to, m.function))
    )


def below(points: Any, load: Any, instance: Any, member: Any) -> Any:
    """Follow loads of fields that some member has."""
    some = load.join(member, on=lambda o, m: o.field == m.name).select(lambda o, m: (o.to, o.base))
    return fixpoint(
        lambda r: points.union(
            r.join(some, on=lambda p, o: p.variable == o[1]).select(
                lambda p, o: Points(o[0], p.heap)
            )
        )
    )


QUERIES: dict[str, Query] = {
    "recursion": lambda points, *others: fixpoint(lambda r: points.union(called(r, *others))),
    "distinct": lambda *tables: called(*tables).distinct(),
    "union": lambda points, *others: points.union(called(points, *others)),
}


def tables_of(db: Database) -> list[Any]:
    return [db.table(kind, name=kind.__name__) for kind in (Points, Load, Instance, Member)]


def touched(query: Query, size: int, *, insert: Callable[[list[Any]], object]) -> int:
    """Return the rows touched by one inserted row, with `size` members of one name."""
    db = Database()
    tables = tables_of(db)
    _, load, instance, member = tables
    load.add_all(Load(f"v{n}", f"b{n}", "get") for n in range(20))
    instance.add_all(Instance(f"h{n}", f"C{n}") for n in range(size))
    member.add_all(Member(f"C{n}", "get", f"C{n}.get") for n in range(size))
    view = query(*tables).materialize()
    tables[0].add(Points("b0", "h0"))
    before = view.stats().touched
    insert(tables)
    return int(view.stats().touched - before)


@pytest.mark.parametrize("name", QUERIES)
def test_a_later_input_is_looked_up_by_all_equations(name: str) -> None:
    def insert(tables: list[Any]) -> None:
        tables[0].add(Points("b1", "h1"))

    small, large = (touched(QUERIES[name], size, insert=insert) for size in (20, 500))
    assert small == large < 40


def test_partners_below_a_recursion_are_not_repeated() -> None:
    def insert(tables: list[Any]) -> None:
        tables[1].add(Load("v99", "b0", "get"))

    small, large = (touched(below, size, insert=insert) for size in (20, 500))
    assert small == large < 40


class Sale(NamedTuple):
    id: int
    customer: int


def test_a_row_found_by_its_key_needs_no_other_look_up() -> None:
    def touched(items: int) -> int:
        db = Database()
        sales, sold = db.table(Sale, name="sales"), db.table(Sale, name="sold")
        customers = db.table(Instance, name="customers", key="heap")
        query = (
            sales.join(sold, on=lambda s, i: s.id == i.id)
            .join(customers, on=lambda s, i, c: s.customer == c.heap and i.customer == c.kind)  # type: ignore[comparison-overlap]
            .select(lambda s, i, c: (s.id, c.kind))
            .distinct()
        )
        customers.add_all(Instance(n, n) for n in range(9))  # type: ignore[arg-type]
        sold.add_all(Sale(n % 7, n) for n in range(items))
        view = query.materialize()
        sales.add(Sale(3, 3))
        before = view.stats().touched
        sales.add(Sale(3, 4))
        view.verify()
        return int(view.stats().touched - before)

    assert touched(40) == touched(4_000)


@pytest.mark.parametrize("query", [*QUERIES.values(), below], ids=[*QUERIES, "below"])
@pytest.mark.parametrize("seed", seeds(3))
def test_rows_are_those_of_the_query_as_written(query: Query, seed: int) -> None:
    random = Random(seed)
    fast, plain = Database(), Database(optimize=False)
    sides = [(db, tables_of(db)) for db in (fast, plain)]
    views = [query(*tables).materialize() for _, tables in sides]
    kinds = (Points, Load, Instance, Member)
    held: list[tuple[int, Any]] = []
    for _ in range(40):
        changes = []
        for _ in range(random.choice((1, 1, 2, 6))):
            if held and random.random() < 0.4:
                changes.append((*held.pop(random.randrange(len(held))), False))
            else:
                place = random.randrange(len(kinds))
                row = kinds[place](*(random.choice("abc") for _ in kinds[place]._fields))
                held.append((place, row))
                changes.append((place, row, True))
        for db, tables in sides:
            with db.transaction():
                for place, row, comes in changes:
                    (tables[place].add if comes else tables[place].remove)(row)
        views[0].verify()
        assert sorted(views[0]) == sorted(views[1])
