"""An exception from outside at any moment of an assignment: object, table and views agree."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from reactive import Database, of
from tests.borders.objects.kinds import Attrs, Data, Model, Struct
from tests.budget import stride
from tests.moments import Moments

MANY = 4000


class World:
    def __init__(self, kind: Any) -> None:
        self.db = Database()
        self.orders = self.db.table(kind, key="id")
        self.large = self.orders.where(lambda o: o.total > 10).materialize()
        self.objects = [kind(id=number, total=float(number)) for number in range(3)]
        self.orders.add_all(self.objects)

    def agrees(self) -> None:
        rows = {id(of(row)): row for row in self.orders}
        for o in self.objects:
            row = rows[id(o)]
            assert (row.id, row.total, row.note) == (o.id, o.total, o.note)
            assert self.orders[o.id] is row
        assert {of(row).id for row in self.large} == {o.id for o in self.objects if o.total > 10}
        assert self.db.check_silent() == []
        self.large.verify()


def alone(world: World) -> None:
    world.objects[0].total = 20.0


def by_key(world: World) -> None:
    world.objects[1].id = 7


def unread(world: World) -> None:
    world.objects[1].note = "x"


def together(world: World) -> None:
    with world.db.transaction():
        world.objects[0].total = 20.0
        world.objects[1].total, world.objects[2].note = 30.0, "y"
        world.objects[1].id, world.objects[2].id = 2, 1


def rolled_back(world: World) -> None:
    with suppress(KeyError), world.db.transaction():
        world.objects[0].total = 20.0
        len(list(world.orders))
        world.objects[0].total = 30.0
        raise KeyError


@pytest.fixture(autouse=True)
def _no_collections() -> Iterator[None]:
    """Disable garbage collection: an interrupt in a finalizer would be lost."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.long
@pytest.mark.parametrize("act", [alone, by_key, unread, together, rolled_back])
@pytest.mark.parametrize("kind", [Data, Attrs, Struct, Model])
def test_an_interrupt_leaves_objects_and_tables_in_agreement(kind: Any, act: Any) -> None:
    every = stride(7, 4)
    for moment in range(hash(act.__name__) % every, MANY, every):
        world = World(kind)
        before = [(o.id, o.total, o.note) for o in world.objects]
        try:
            with Moments(moment) as moments, suppress(KeyboardInterrupt):
                act(world)
            world.agrees()
            now = [(o.id, o.total, o.note) for o in world.objects]
            assert now == before or act is not rolled_back
            world.objects[2].total = 50.0
            world.agrees()
        except Exception as error:
            error.add_note(f"at moment {moment}: {moments.where}")
            raise
        if moments.where is None:
            return
    raise AssertionError("it has more moments")
