"""Play a service that makes and drops queries and classes; its memory must not
grow.

python -m tests.growth.memory --rounds 10000 --commits 100

A round uses one kind of `KINDS` and `BESIDE`, in turn, and makes the commits. Memory is compared
after two tenths of the rounds, in which caches fill, and at the end.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.growth.dropped import KINDS, Base, World

FILLED = 1
"""The tenth after which caches are full: 64 later classes replace a generated class."""
MOST = 1.01
"""Limit of the final memory, in multiples of the memory after filling."""


def family(world: World, number: int) -> None:
    views = world.db.family(lambda n: world.base.where(lambda r: r.a == n))
    assert len(list(views[number])) <= 1
    views.close()


def subscription(world: World, number: int) -> None:
    told: list[Any] = []
    with world.base.where(lambda r: r.a > number).materialize() as view:
        subscribed = view.subscribe(told.append)
        world.base.add(Base(number + 1, number))
        subscribed.close()
        world.base.remove(Base(number + 1, number))
    assert len(told) == 1


def text_of_sql(world: World, number: int) -> None:
    text = f"select b, count(*) as n from base where a < {number} group by b"
    world.db.sql(text).materialize().close()


def datalog(world: World, number: int) -> None:
    rules = f".decl made{number}(n: number)\nmade{number}({number}).\n.output made{number}"
    program = world.db.datalog(rules)
    program[f"made{number}"].materialize().close()


def recursion(world: World, number: int) -> None:
    text = (
        f"with recursive up(n{number}) as (select a from base union select n{number} + 1 from up "
        f"where n{number} < {number % 5}) select * from up"
    )
    world.db.sql(text).materialize().close()


Use = Callable[[World, int], object]
BESIDE: dict[str, Use] = {
    each.__name__: each for each in (family, subscription, text_of_sql, datalog, recursion)
}
"""Uses beside classes and names that are made and dropped."""


def play(world: World, uses: Sequence[Use], numbers: Sequence[int], *, commits: int) -> None:
    """Use one kind after the other, for one number each, with `commits` commits after each."""
    for number in numbers:
        uses[number % len(uses)](world, number)
        for each in range(commits // 2):
            world.base.add(Base(-1, each))
            world.base.remove(Base(-1, each))


def counted_objects() -> int:
    gc.collect()
    return len(gc.get_objects())


def resident() -> int:
    """Return the resident bytes of this process, after free memory is returned to the system."""
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 1 if memory has grown."""
    parser = argparse.ArgumentParser(prog="python -m tests.growth.memory", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--commits", type=int, default=100, help="after each round")
    options = parser.parse_args(arguments)
    world, tenth = World(), options.rounds // 10
    uses = [*BESIDE.values(), *KINDS.values()]
    began = first = 0
    for part in range(10):
        start = time.monotonic()
        numbers = range(part * tenth, (part + 1) * tenth)
        play(world, uses, numbers, commits=options.commits)
        now = resident(), counted_objects()
        if part == FILLED:
            began, first = now
        took = time.monotonic() - start
        print(
            f"{(part + 1) * tenth} rounds: {now[0]:,} bytes, {now[1]:,} objects, {took:.0f} s",
            flush=True,
        )
    has_grown = now[0] > began * MOST or now[1] > first * MOST
    print("memory has grown" if has_grown else "memory is what it was")
    return int(has_grown)


if __name__ == "__main__":
    sys.exit(main())
