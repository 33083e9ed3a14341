"""Classes of rows, and names of columns, that are made, used in a query, and dropped."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import attrs
import msgspec

from reactive import Count, Database, tracked


class Base(NamedTuple):
    a: int
    b: int


class World:
    """A database with a table; classes and names are made and dropped."""

    def __init__(self) -> None:
        self.db = Database()
        self.base = self.db.table(Base, name="base")
        self.base.add(Base(1, 2))

    def use(self, kind: Any) -> Any:
        table = self.db.table(kind, name="t")
        view = table.where(lambda r: r.a > 1).select(lambda r: r.b).distinct().materialize()
        table.add(kind(1, 2))
        view.close()
        self.db.drop(table)
        return kind

    def row_of(self, relation: Any) -> Any:
        with relation.materialize() as view:
            return type(next(iter(view)))


def named_tuple(world: World, number: int) -> Any:
    class Row(NamedTuple):
        a: int
        b: int

    return world.use(Row)


def data_class(world: World, number: int) -> Any:
    @dataclasses.dataclass(frozen=True)
    class Row:
        a: int
        b: int

    return world.use(Row)


def slotted_class(world: World, number: int) -> Any:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Row:
        a: int
        b: float

    return world.use(Row)


def struct(world: World, number: int) -> Any:
    class Row(msgspec.Struct, frozen=True):
        a: int
        b: int

    return world.use(Row)


def attrs_class(world: World, number: int) -> Any:
    @attrs.frozen
    class Row:
        a: int
        b: int

    return world.use(Row)


def tracked_class(world: World, number: int) -> Any:
    @tracked
    class Row:
        a: int
        b: int

    return world.use(Row)


def joined_class(world: World, number: int) -> Any:
    class Row(NamedTuple):
        a: int
        b: int

    table = world.db.table(Row, name="t")
    pairs = table.join(world.base, on=lambda r, s: r.a == s.a).select(lambda r, s: Row(r.a, s.b))
    view = pairs.materialize()
    table.add(Row(1, 2))
    view.close()
    world.db.drop(table)
    return Row


def table_of_sql(world: World, number: int) -> Any:
    world.db.execute(f"create table made{number} (a integer, b{number} text)")
    world.db.execute(f"insert into made{number} values (1, 'x')")
    kind = world.row_of(world.db.sql(f"select * from made{number}"))
    world.db.execute(f"drop table made{number}")
    return kind


def counted(world: World, number: int) -> Any:
    named: Any = {f"c{number}": Count()}
    return world.row_of(world.base.group_by("a").aggregate(**named))


NAMES: dict[str, Callable[[World, int], Any]] = {
    "aggregate": counted,
    "sql": lambda w, n: w.row_of(w.db.sql(f"select a as c{n} from base")),
    "nest": lambda w, n: w.row_of(
        w.base.nest(**{f"c{n}": lambda r: w.base.where(lambda s: s.a == r.a)})
    ),
}
KINDS: dict[str, Callable[[World, int], Any]] = {
    each.__name__: each
    for each in (
        *(named_tuple, data_class, slotted_class, struct, attrs_class, tracked_class),
        *(joined_class, table_of_sql),
    )
} | NAMES
