"""A process of its own, which tests kill: a part of rows whose class is in this very script."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

from reactive import Database
from reactive.remote.fragments import part_of
from spark_backend import SparkOffload
from tests.spark.conftest import SMALL


@dataclass(frozen=True)
class Order:
    """A row."""

    number: int
    customer: str


def main(folder: str, what: str) -> None:
    offload = SparkOffload(master="local[2]", checkpoint=folder, trust=True, config=SMALL)
    offload.open()
    part = part_of(Database().table(Order, name="orders").distinct().plan)
    remote = offload.begin(part, "orders")

    def apply(number: int, changes: list[tuple[int, int]]) -> list[tuple[Order, int]]:
        rows = [(Order(order, "somebody"), weight) for order, weight in changes]
        entries = [(0, *remote.pack(0, row, row), weight) for row, weight in rows]
        return list(remote.apply(number, entries))

    def say(**found: object) -> None:
        rows = sum(1 for _ in remote.contents())
        print(json.dumps({**found, "rows": rows}), flush=True)

    if what == "begin":
        apply(0, [(order, 1) for order in range(10)])
        apply(1, [(order, 1) for order in range(10, 20)])
        say(resumed=remote.resumed)
        apply(2, [(order, 1) for order in range(20, 25)])
        sys.stdin.read()  # until it is killed
        return
    say(resumed=remote.resumed)
    delta = apply(3, [(100, 1), (4, -1)])
    say(delta=sorted((order.number, weight) for order, weight in delta))
    offload.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
