"""Write a durable file, a pickle and a checkpoint of Spark, and state their contents.

    python -m tests.old_files.written      writes them: with the code of an older commit only

The declarations here must not change: the files hold the names of these classes, and the
fingerprints of these queries.
"""

from __future__ import annotations

import json
import pickle
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from optimizer.plans.fingerprint import fingerprint
from reactive import (
    Bag,
    Count,
    Database,
    Max,
    Sum,
    TableError,
    ZSet,
    col,
    desc,
    tracked,
)

HERE = Path(__file__).parent
FILE = HERE / "shop.db"
PICKLE = HERE / "values.pickle"
FINGERPRINTS = HERE / "fingerprints.json"
CHECKPOINT = HERE / "checkpoint.tar.xz"
SMALL = {"spark.driver.memory": "1g", "spark.default.parallelism": "2"}
HOURS = (
    "select date_trunc('day', at) as day, name, sum(price) as total, "
    "count(*) filter (where name like 'a%') as a, max(price) over (partition by name) as top "
    "from fruit where at + interval '1 day' > timestamp '2026-01-01' and upper(name) <> 'FIG' "
    "group by date_trunc('day', at), name, price"
)
TAKEN = (
    "select name, at - timestamp '2026-01-01' as took, interval '1 month 25 hours' as span "
    "from fruit"
)
FRUIT = "create table fruit (id int primary key, name text, price decimal(9, 2), at timestamp)"
ROWS = "insert into fruit values {}"
FIRST = (
    "(1, 'apple', 1.50, timestamp '2026-01-02 03:04:05'), "
    "(2, 'fig', 2.25, timestamp '2026-01-02 04:00:00')"
)
PROGRAM = """
.decl edge(from: symbol, to: symbol)
.input edge
.decl path(from: symbol, to: symbol)
path(a, b) :- edge(a, b).
path(a, c) :- path(a, b), edge(b, c).
.output path
"""


class Line(NamedTuple):
    """A line of an order."""

    what: str
    cents: int


@dataclass(frozen=True, slots=True)
class Order:
    """A row with bags in it."""

    id: int
    customer: str
    lines: Bag[Line]


@dataclass(frozen=True, slots=True)
class Sale:
    """A row that is columns on Spark."""

    amount: float
    customer: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A row that is pickled on Spark."""

    number: int
    what: Any


@tracked
class Cart:
    """An object that changes."""

    id: int
    items: list[str]
    counts: dict[str, int]
    tags: set[str]


ORDERS = [Order(n, "ab"[n % 2], Bag([Line("tea", 10 * n), Line("jam", n)])) for n in range(4)]


class Told(list[Any]):
    """The arguments that a sink was called with, in order."""

    def __call__(self, number: int, changes: Any) -> None:
        self.append((number, sorted(changes, key=repr)))


@contextmanager
def shop(db: Database, alerts: Told, heard: list[Any]) -> Iterator[tuple[Any, Any]]:
    """The tables, views, sinks and subscriptions of the durable file."""
    orders: Any = db.table(Order, name="orders", key="id")
    db.execute(FRUIT if "fruit" not in {each.name for each in db.tables()} else "select 1")
    per_customer = orders.group_by(lambda o: o.customer).aggregate(Count()).materialize("customers")
    kept = orders.group_by(lambda o: o.id % 2).aggregate(Count()).materialize("kept", kept=True)
    per_customer.changes_to(alerts, name="alerts")
    with per_customer.subscribe(heard.append, name="bell"):
        yield orders, kept


def values() -> dict[str, Any]:
    """The values that are pickled, by name."""
    db = Database()
    orders: Any = db.table(Order, name="orders", key="id")
    deltas: list[Any] = []
    view = orders.materialize("all")
    with view.subscribe(deltas.append):
        orders.add_all(ORDERS[:2])
        orders.upsert(Order(0, "c", Bag([Line("tea", 0)])))
    carts: Any = db.table(Cart, key="id")
    carts.add(Cart(1, ["tea", "jam"], {"tea": 2}, {"new"}))
    words = db.table(tuple[str, str], name="edge")
    words.add_all([("a", "b"), ("b", "c")])
    db.execute(FRUIT)
    db.execute(ROWS.format(FIRST))
    totals = orders.group_by(lambda o: o.customer).aggregate(Count(), Sum(lambda o: o.id))
    nested = orders.nest(same=lambda o: orders.where(lambda p: p.customer == o.customer))
    frames = db.table_from([{"id": 1, "n": 3}, {"id": 2, "n": 5}], key="id", name="stock")
    program = db.datalog(PROGRAM, inputs={"edge": words})
    return {
        "rows": list(ORDERS),
        "deltas": deltas,
        "snapshot": view.snapshot(),
        "totals": totals.materialize("totals").snapshot(),
        "named": list(
            orders.select(id=lambda o: o.id, who=lambda o: o.customer).materialize("named")
        ),
        "nested": list(nested.materialize("nested")),
        "weighted": ZSet({"a": 2, "b": -1}),
        "bag": Bag(["a", "b", "a"]),
        "sql": list(db.sql(HOURS).materialize("hours")),
        "intervals": list(db.sql(TAKEN).materialize("taken")),
        "fruit": sorted(_table(db, "fruit"), key=repr),
        "frame": list(frames),
        "paths": sorted(program["path"].materialize("paths")),
        "objects": list(
            carts.select(lambda c: (c.id, c.items, c.counts, c.tags)).materialize("carts")
        ),
        "error": TableError("table 'orders' is full"),
    }


def fingerprints() -> dict[str, str]:
    """The fingerprints of queries whose plans name functions and classes of the library."""
    db = Database()
    orders: Any = db.table(Order, name="orders", key="id")
    words: Any = db.table(tuple[str, str], name="edge")
    db.execute(FRUIT)
    each = {
        "hours": db.sql(HOURS),
        "taken": db.sql(TAKEN),
        "paths": db.datalog(PROGRAM, inputs={"edge": words})["path"],
        "columns": orders.where(col("customer") == "a").select(col("id")),
        "lines": orders.select_many(lambda o: o.lines)
        .group_by(lambda line: line.what)
        .aggregate(Count()),
        "nested": orders.nest(same=lambda o: orders.where(lambda p: p.customer == o.customer)),
        "ordered": orders.order_by(desc(lambda o: o.customer)),
        "names": orders.select(id=lambda o: o.id, who=lambda o: o.customer).distinct(),
    }
    return {name: fingerprint(query.plan) for name, query in each.items()}


def _table(db: Database, name: str) -> Any:
    (found,) = (table for table in db.tables() if table.name == name)
    return found


def write_file() -> None:
    """Write the durable file."""
    FILE.unlink(missing_ok=True)
    alerts, heard = Told(), list[Any]()
    with Database(FILE, keep=100) as db, shop(db, alerts, heard) as (orders, _):
        orders.add_all(ORDERS)
        db.execute(ROWS.format(FIRST))
        db.flush()


PAIRS = [Pair(n % 3, Bag([n % 2, "x"])) for n in range(6)]


SALES = [Sale(float(n), "ab"[n % 2]) for n in range(4)]
MORE = Sale(9.0, "a")
PAIR = Pair(7, Bag(["x", 0]))


@contextmanager
def on_spark(offload: Any, *, again: bool = False) -> Iterator[Any]:
    """Tables and views whose state is in the checkpoint: in columns, and as pickled rows."""
    with Database(offload=offload) as db:
        sales: Any = db.table(Sale, name="sales")
        pairs: Any = db.table(Pair, name="pairs")
        sales.add_all([*SALES, *[MORE] * again])
        pairs.add_all([*PAIRS, *[PAIR] * again])
        most = sales.group_by(lambda o: o.customer).aggregate(Max(lambda o: o.amount))
        bags = pairs.distinct()
        views = most.materialize("most"), bags.materialize("bags")
        for view in views:
            view.offload()
        yield db, sales, pairs, *views


def write_checkpoint() -> None:
    """Write the checkpoint."""
    from spark_backend import SparkOffload

    with TemporaryDirectory() as folder:
        offload = SparkOffload(
            master="local[2]", threshold_rows=None, checkpoint=folder, config=SMALL
        )
        with on_spark(offload) as (db, sales, pairs, most, bags):
            sales.add(MORE)
            pairs.add(PAIR)
            print(sorted(most), sorted(bags, key=repr), db.offload_status())
        with tarfile.open(CHECKPOINT, "w:xz") as archive:
            archive.add(folder, ".")


if __name__ == "__main__":
    from tests.old_files import written

    written.write_file()
    written.write_checkpoint()
    FINGERPRINTS.write_text(json.dumps(written.fingerprints(), indent=1) + "\n")
    PICKLE.write_bytes(pickle.dumps(written.values(), protocol=4))
