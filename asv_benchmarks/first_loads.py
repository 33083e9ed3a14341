"""The first load of views of several kinds: `python -m asv_benchmarks.first_loads [ROWS]`.

    add_all       the rows into a table, the twin
    sum, ...      a view that is made when they are there

Times are processor seconds, each the least of some turns, and that of `add_all` is the unit of the
ratios beside them.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import process_time
from typing import Any, NamedTuple

import msgspec

from reactive import Avg, Count, CountDistinct, Database, Max, Sum

TURNS = 3
GROUP = 20
"""Orders of a customer."""


class Struct(msgspec.Struct, frozen=True):
    """An order."""

    id: int
    customer: int
    name: str
    total: float


@dataclass(frozen=True, slots=True)
class Data:
    """A row as a dataclass."""

    id: int
    customer: int
    name: str
    total: float


class Named(NamedTuple):
    """A row as a named tuple."""

    id: int
    customer: int
    name: str
    total: float


Query = Callable[[Any], Any]
KINDS: Mapping[str, Query] = {
    "where": lambda t: t.where(lambda o: o.total < 100),
    "count": lambda t: t.group_by(lambda o: o.customer).aggregate(Count()),
    "sum": lambda t: t.group_by(lambda o: o.customer).aggregate(Sum(lambda o: o.total), Count()),
    "sum by text": lambda t: t.group_by(lambda o: o.name).aggregate(Sum(lambda o: o.total)),
    "avg": lambda t: t.group_by(lambda o: o.customer).aggregate(Avg(lambda o: o.total)),
    "max": lambda t: t.group_by(lambda o: o.customer).aggregate(Max(lambda o: o.total)),
    "distinct names": lambda t: t.aggregate(CountDistinct(lambda o: o.name)),
    "sum of all": lambda t: t.aggregate(Sum(lambda o: o.total)),
    "top ten": lambda t: t.order_by(lambda o: -o.total).limit(10),
    "distinct": lambda t: t.select(lambda o: o.customer).distinct(),
    "join": lambda t: t.join(t, on=lambda a, b: a.customer == b.id).select(lambda a, b: b.name),
}


def seconds(act: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds of a call without the garbage of others, and its result."""
    gc.collect()
    began = process_time()
    found = act()
    return process_time() - began, found


def measured(kind: Any, count: int) -> dict[str, float]:
    """Return the least seconds of each."""
    customers = max(1, count // GROUP)
    rows = [kind(n, n % customers, f"n{n % customers}", n / 3) for n in range(count)]
    found: dict[str, float] = {}
    for _ in range(TURNS):
        table = Database().table(kind, key="id")
        times = {"add_all": seconds(lambda table=table: table.add_all(rows))[0]}  # type: ignore[misc]
        for name, query in KINDS.items():
            make = query(table).materialize
            times[name], view = seconds(make)
            del view
        found = {name: min(time, found.get(name, time)) for name, time in times.items()}
    return found


def main(count: int) -> None:
    """Print all of it."""
    for kind in (Struct, Data, Named):
        found = measured(kind, count)
        print(
            f"{kind.__name__}, {count:,} rows: "
            + ", ".join(
                f"{name} {time:.3f} s ({time / found['add_all']:.1f}x)"
                for name, time in found.items()
            )
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200_000)
