"""A database with operators and tables on disk, at every moment at which the disk fails.

A refused statement has changed nothing, a view that cannot be updated is updated later, and a
killed process is continued by the next one. No Spark here.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Collect, Database, Max, OffloadError, Sum, TableError
from spark_backend.parts import spilled, spilled_keyed
from tests.budget import TIMES, drawing
from tests.faults.files import Fault, Stopped, failing
from tests.faults.in_process import Offload, in_process
from tests.spark.ways import way

STEPS = 30
MOMENTS = 2
"""Number of moments of a history that a sample tries, other ones in each run."""
COUNTED: list[int] = []
"""Number of moments of the history, once counted."""


@dataclass(frozen=True, slots=True)
class Order:
    id: int
    town: int
    amount: float


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All of it in this process, and little at a time."""
    for module in (spilled, spilled_keyed):
        monkeypatch.setattr(module, "WRITTEN", 3)
    monkeypatch.setattr(import_module("reactive.engine.dataflow.snapshot"), "PIECE", 4)
    monkeypatch.setattr(sys.modules["reactive.borders.offload.spilling"], "PIECE", 4)
    with in_process():
        yield


class World:
    """Two tables and two views over them; `offload` is where they go, if anywhere."""

    def __init__(self, offload: Any = None) -> None:
        self.db = Database(offload=offload)
        self.orders: Any = self.db.table(Order, name="orders", key="id")
        self.towns: Any = self.db.table(tuple, name="towns")
        both = self.orders.join(self.towns, on=lambda o, t: o.town == t[0])
        groups = both.group_by(lambda o, t: t[1])
        self.views: list[Any] = [
            groups.aggregate(Sum(lambda o, t: o.amount)).materialize("sums"),
            groups.aggregate(
                Max(lambda o, t: str(o.amount)), Collect(lambda o, t: o.id)
            ).materialize("largest"),
        ]

    def fill(self, orders: Any, towns: Any) -> None:
        with self.db.transaction():
            self.orders.add_all(orders)
            self.towns.add_all(towns)

    def change(self, draw: Random) -> None:
        """A statement, or a transaction of several; some are refused by the tables."""
        order = Order(draw.randrange(9), draw.randrange(3), draw.choice([0.1, 2.5, 7.0]))
        town = (draw.randrange(3), draw.choice("ab"))
        match draw.randrange(7):
            case 0:
                self.orders.upsert(order)
            case 1:
                self.orders.discard(order)
            case 2:
                self.towns.add(town)
            case 3:
                self.towns.remove(town)
            case 4:
                self.orders.upsert_all(Order(n, draw.randrange(3), 1.5) for n in range(5))
            case 5:
                self.orders.delete(draw.randrange(9))
            case _:
                with self.db.transaction():
                    self.orders.upsert(order)
                    self.towns.add(town)
                    self.towns.remove((0, "a"))

    def check(self, twin: World) -> None:
        """Check that both have equal contents."""
        assert set(self.orders) == set(twin.orders)
        assert Counter(self.towns) == Counter(twin.towns)
        for view, other in zip(self.views, twin.views, strict=True):
            assert sorted(refused(view.read)[0]) == sorted(other)


def refused(act: Callable[[], Any], *, again: bool = True) -> tuple[Any, bool]:
    """Return the result, and True if it was refused for lack of space; then retry it if `again`."""
    while True:
        try:
            return act(), False
        except TableError as error:
            return str(error), False
        except OffloadError as error:
            assert "No space left on device" in str(error) and "\n  " in str(error)
            if not again:
                return None, True


def played(world: World, twin: World) -> None:
    """Play a history to both; a statement that is refused for lack of space did not happen."""
    draw = Random(5)
    begin = [Order(n, n % 3, n / 4) for n in range(7)], [(0, "a"), (1, "a"), (2, "b")]
    world.fill(*begin)
    twin.fill(*begin)
    for step in range(STEPS):
        if step == 2:
            for view in world.views:
                refused(view.offload)
        if step == 20:
            refused(world.views[1].recall)
        state = draw.getstate()
        said, is_refused = refused(lambda: world.change(draw), again=False)
        if not is_refused:
            draw.setstate(state)
            assert refused(lambda: twin.change(draw)) == (said, False)
        if step % 2:
            with way(is_job=step % 4 == 1):
                world.check(twin)


def moments(folder: Path) -> list[int]:
    """The changes of files that a history makes, or some of them."""
    if not COUNTED:
        with failing(Fault()) as fault:
            world = World(Offload(str(folder / "counted")))
            played(world, World())
            world.db.close()
        COUNTED.append(fault.count)
    every = range(1, COUNTED[0] + 1)
    return list(every) if TIMES else sorted(drawing().sample(every, MOMENTS))


@pytest.mark.long
@pytest.mark.parametrize("times", [1, 40])
def test_a_disk_that_is_full_refuses_statements_whole_and_delays_views(
    times: int, tmp_path: Path
) -> None:
    for moment in moments(tmp_path):
        with failing(Fault(moment, times)):
            world, twin = World(Offload(str(tmp_path / str(moment)))), World()
            played(world, twin)
            for view in world.views:
                refused(view.recall)
            world.check(twin)
            world.db.close()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of writers
def test_a_process_that_is_killed_at_any_moment_is_gone_on_with(tmp_path: Path) -> None:
    for moment in moments(tmp_path):
        folder, twin = str(tmp_path / str(moment)), World()
        with failing(Fault(moment, stops=True)), pytest.raises(Stopped):
            offload = Offload(folder)
            try:
                played(World(offload), twin)
            finally:
                assert offload._lock is not None
                offload._lock.close()  # as the system does
        later = World(Offload(folder))
        later.fill(twin.orders, twin.towns)
        for view in later.views:
            view.offload(adopt="process")
        later.check(twin)
        for step in range(4):
            said = [refused(partial(world.change, Random(step))) for world in (later, twin)]
            assert said[0] == said[1]
            later.check(twin)
        later.db.close()
        assert not list((Path(folder) / "spilled").glob("*"))
