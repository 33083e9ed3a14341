"""Frames into tables and back: by columns, and row by row.

python -m asv_benchmarks.frames [--rows 200000] [--synced 1000000] [--runs 3]

    load     Parquet to a keyed table with a live join and group: `table.load(path)`, beside
             `add_all` of rows that a loop makes of `to_pylist`
    sync     of an unchanged frame, and of one with 1 changed row in 1000, beside `replace_all` of
             rows that exist already
    export   `view.to_arrow()`, beside a list of tuples that polars takes apart

Seconds of the processor, the least of the runs: all sides in turns, in one process.
"""

from __future__ import annotations

import argparse
import gc
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from asv_benchmarks.measure import SEED
from asv_benchmarks.table import markdown
from reactive import Count, Database, Sum


@dataclass(frozen=True, slots=True)
class Slotted:
    """A sale."""

    id: int
    customer: int
    town: str
    price: float | None
    qty: int


class Named(NamedTuple):
    """A sale."""

    id: int
    customer: int
    town: str
    price: float | None
    qty: int


class Struct(msgspec.Struct, frozen=True):
    """A sale."""

    id: int
    customer: int
    town: str
    price: float | None
    qty: int


class Customer(NamedTuple):
    """A buyer."""

    id: int
    region: str


KINDS: tuple[Any, ...] = (Slotted, Named, Struct)
CUSTOMERS = 2000
Prepared = tuple[Callable[[], object], Callable[[], object]]
"""The timed functions: by columns, and row by row."""


def sales(count: int) -> Any:
    """Return sales, some without a price."""
    random = np.random.default_rng(SEED)
    price = pa.array(random.random(count) * 100, mask=random.random(count) < 0.01)
    return pa.table(
        {
            "id": np.arange(count),
            "customer": random.integers(0, CUSTOMERS, count),
            "town": pa.array(random.choice(["Bonn", "Ulm", "Köln", "Trier"], count)),
            "price": price,
            "qty": random.integers(1, 9, count),
        }
    )


def loaded(kind: Any, path: Path) -> Prepared:
    """A file into a table that a live join and group reads."""

    def by_columns() -> object:
        table, view = _live(kind)
        table.load(path)
        return view

    def by_rows() -> object:
        table, view = _live(kind)
        table.add_all([kind(**row) for row in pq.read_table(path).to_pylist()])
        return view

    return by_columns, by_rows


def _live(kind: Any) -> tuple[Any, Any]:
    db = Database()
    table = db.table(kind, name="sales", key="id")
    customers = db.table(Customer, name="customers", key="id")
    customers.add_all([Customer(n, f"r{n % 7}") for n in range(CUSTOMERS)])
    view = (
        table.join(customers, on=lambda s, c: s.customer == c.id)
        .group_by(lambda s, c: c.region)
        .aggregate(Count(), Sum(lambda s, c: s.qty))
        .materialize()
    )
    return table, view


def synced(frame: Any, key: str | None) -> tuple[Prepared, Prepared]:
    """A frame again, as it is; and in turns with one that has other rows."""
    columns, rows = (Database().table_from(frame, key=key) for _ in range(2))
    columns.sync(frame)
    ids = np.arange(len(frame))
    other = frame.set_column(4, "qty", pa.array(np.where(ids % 1000 == 0, 99, frame["qty"])))
    frames = [other, frame]
    same = list(rows)
    lists = [list(Database().table_from(other)), same]

    def changed_by_columns() -> object:
        frames.reverse()
        return columns.sync(frames[1])

    def changed_by_rows() -> object:
        lists.reverse()
        rows.replace_all(lists[1])
        return lists

    def same_rows() -> object:
        rows.replace_all(same)
        return same

    return (partial(columns.sync, frame), same_rows), (changed_by_columns, changed_by_rows)


def exported(frame: Any) -> Prepared:
    """Return a table as a frame."""
    table = Database().table_from(frame, key="id")
    names = frame.column_names
    return (
        table.to_arrow,
        lambda: pl.DataFrame(
            [tuple(getattr(row, name) for name in names) for row in table],
            schema=names,
            orient="row",
        ),
    )


def seconds(prepared: Prepared, runs: int) -> tuple[float, float]:
    """Return the least of the runs, of both sides in turns."""
    least = [float("inf"), float("inf")]
    for _ in range(runs):
        for place, act in enumerate(prepared):
            gc.collect()
            began = process_time()
            made = act()
            least[place] = min(least[place], process_time() - began)
            del made
    return least[0], least[1]


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="asv_benchmarks.frames")
    parser.add_argument("--rows", type=int, default=200_000, help="of a load and an export")
    parser.add_argument("--synced", type=int, default=1_000_000, help="rows of a sync")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    lines: list[tuple[str, ...]] = []

    def measure(name: str, prepared: Prepared) -> None:
        ours, twin = seconds(prepared, options.runs)
        lines.append((name, f"{ours:.3f}", f"{twin:.3f}", f"{twin / ours:.1f}"))

    frame = sales(options.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sales.parquet"
        pq.write_table(frame, path)
        for kind in KINDS:
            measure(f"load, {options.rows:,} of {kind.__name__}", loaded(kind, path))
    measure(f"export, {options.rows:,} rows", exported(frame))
    frame = sales(options.synced)
    for key in ("id", None):
        of = f"{options.synced:,} rows, {'with' if key else 'without'} a key"
        unchanged, changed = synced(frame, key)
        measure(f"sync of {of}, unchanged", unchanged)
        measure(f"sync of {of}, 0.1% changed", changed)
    header = ("what", "by columns, s", "by rows, s", "times")
    print("\n".join(markdown(header, lines)))


if __name__ == "__main__":
    main()
