"""Views on Spark equal views in the process, after every flush, by every way of reading."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Avg, Collect, Count, Database, Min, OffloadError, Sum
from tests.budget import TIMES, seeds
from tests.random_queries.drawn import SPARK, commit, draw
from tests.random_queries.plans import Switches
from tests.replica import Replica
from tests.spark import plans
from tests.spark.plans import KEYS, NUMBERS, ODD, Pairing, Row
from tests.spark.ways import Ways

SWITCHES = Switches(sizes=(1, 2, 3), orders=False)


@dataclass(frozen=True)
class Unordered:
    """A row that has no order."""

    name: str


def two(db: Database) -> list[Any]:
    return [db.table(Row, name="left"), db.table(Row, name="right")]


@pytest.mark.parametrize("kind", ["JOINS", "SETS", "GROUPS", "OTHERS"])
def test_every_operator(kind: str, session: Any, offload: Any) -> None:
    """Views are compared with views in the process, and twice with plain evaluation."""
    pairing = Pairing(offload, two, getattr(plans, kind))
    pairing.come(1, 12)
    pairing.offload()
    assert set(pairing.refused) <= {"recursion"}
    pairing.check(KEYS[::5], verify=TIMES > 0)
    pairing.come(3, 9)
    pairing.come(5, 9, ODD)
    pairing.check(KEYS[::4])
    pairing.change(lambda tables: [table.clear() for table in tables])
    pairing.check(KEYS[:3], verify=TIMES > 0)
    pairing.come(7, 15, (*NUMBERS, *ODD))
    pairing.check(KEYS)
    pairing.close()


def test_a_recursion_stays_and_follows_its_input_at_flushes(session: Any, offload: Any) -> None:
    queries = {name: plans.OTHERS[name] for name in ("edges", "recursion")}
    pairing = Pairing(offload, two, queries)
    pairing.offload()
    assert "cannot be done in columns" in pairing.refused["recursion"]
    assert len(pairing.db.offload_status()) == 1
    pairing.change(lambda tables: tables[0].add_all(Row(n, n + 1) for n in range(5)))
    recursion = pairing.views["recursion"]
    assert recursion.read(stale_ok=True) == []
    pairing.check()
    assert len(recursion) == 15
    pairing.change(lambda tables: tables[0].remove(Row(2, 3)))
    pairing.check()
    pairing.close()


def test_rows_of_no_order_stand_as_before_when_they_move(session: Any, offload: Any) -> None:
    db = Database(offload=offload)
    table = db.table(Unordered, name="rows")
    view = table.order_by(lambda row: 0).limit(7).materialize("first")
    replica = Replica(view)
    table.add_all(Unordered(str(n)) for n in range(100))
    view.offload()
    replica.check()
    view.recall()
    replica.check()
    db.close()


@pytest.mark.parametrize("seed", seeds(12))
def test_random_queries(session: Any, offload: Any, seed: int) -> None:
    drawn = draw(seed, SWITCHES, count=3, modes=SPARK, steps=5)
    db = Database(offload=offload, optimize=seed != 1)
    tables = drawn.open(db)
    views = [relation.materialize() for relation in drawn.relations(tables)]
    replicas, ways = [Replica(view) for view in views], Ways(seed)
    for place, calls in enumerate(drawn.script()):
        commit(db, tables, calls)
        if place == 1:
            for view in views:
                with refused_for_a_reason():
                    view.offload()
        if place != 2:
            with ways.next():
                db.flush()
            for view, replica in zip(views, replicas, strict=True):
                view.verify()
                replica.check()
                for row, count in view.zset().items():
                    assert view.count(row) == count
    db.close()


@contextmanager
def refused_for_a_reason() -> Iterator[None]:
    try:
        yield
    except OffloadError as error:
        assert "cannot be moved: " in str(error)


@pytest.mark.quick
def test_a_huge_commit_is_summed_exactly(session: Any, offload: Any) -> None:
    db = Database(offload=offload)
    table: Any = db.table(tuple, name="rows")
    groups = table.group_by(lambda r: r[0] % 7)
    sums = groups.aggregate(Count(), Sum(lambda r: r[1]), Avg(lambda r: r[1])).materialize("sums")
    least = groups.aggregate(Min(lambda r: r[1]), Collect(lambda r: r[0] % 3)).materialize("least")
    sums.offload()
    least.offload()
    values = [(n, (0.1 * n if n % 2 else 1e16) * (-1) ** (n // 14)) for n in range(10_000)]
    table.add_all(values)
    check_sums(sums, values)
    table.remove_all(values[::2])
    check_sums(sums, values[1::2])
    for view in (sums, least):
        view.verify()
    table.replace_all(values[:1])
    check_sums(sums, values[:1])
    least.verify()
    db.close()


def check_sums(view: Any, values: list[tuple[int, float]]) -> None:
    groups = defaultdict(list)
    for n, value in values:
        groups[n % 7].append(value)
    wanted = {k: (len(v), math.fsum(v), math.fsum(v) / len(v)) for k, v in groups.items()}
    assert dict(view) == wanted
