"""A part that Spark keeps is what the reference in memory is, after every flush."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import pytest

from reactive import (
    Aggregate,
    Collect,
    CountDistinct,
    Database,
    Max,
    Min,
    Monoid,
)
from reactive.engine.remote.fragments import Fragment, offloaded_fragment
from reactive.errors import TakenIn
from spark_backend import SparkOffload
from spark_backend.bucketed.remote import BucketedRemote
from tests.budget import TIMES
from tests.spark.histories import History, Inner, Twins

Rel = Any
Make = Callable[[Rel, Rel], Rel]


def key(row: Any) -> Any:
    return row[0]


def ones(row: Any) -> Any:
    return 1 + (row[1] == 1)


def alone(row: Any) -> Any:
    return frozenset([row[1]])


def either(a: Any, b: Any) -> Any:
    return a | b


def one(a: Any, b: Any) -> Any:
    return 1


def plus(total: Any, number: Any) -> Any:
    return total + number


def minus(total: Any, number: Any) -> Any:
    return total - number


def smaller(a: Any, b: Any) -> bool:
    return bool(a[1] <= b[1])


def value(row: Any) -> Any:
    return row[1]


def grouped(*aggregates: Any) -> Make:
    return lambda a, b: a.group_by(key).aggregate(*aggregates)


PARTS: dict[str, Make] = {
    "distinct": lambda a, b: a.distinct(),
    "union": lambda a, b: a.union(b),
    "difference": lambda a, b: a.difference(b),
    "difference_all": lambda a, b: a.difference_all(b),
    "intersection": lambda a, b: a.intersection(b),
    "intersection_all": lambda a, b: a.intersection_all(b),
    "join": lambda a, b: a.join(b, left_key=key, right_key=key),
    "join with a condition": lambda a, b: a.join(b, on=smaller, left_key=key, right_key=key),
    "left_join": lambda a, b: a.left_join(b, left_key=key, right_key=key),
    "full_join": lambda a, b: a.full_join(b, on=smaller, left_key=key, right_key=key),
    "semi_join": lambda a, b: a.semi_join(b, left_key=key, right_key=key),
    "anti_join": lambda a, b: a.anti_join(b, left_key=key, right_key=key),
    "Min and Max": grouped(Min(value), Max(value), CountDistinct(value)),
    "Collect": grouped(Collect(key), Collect(value)),
    "an aggregate": grouped(
        Aggregate(0, plus, minus, of=ones),
        Monoid(frozenset(), either, of=alone),
    ),
    "join and select": lambda a, b: a.join(b, left_key=key, right_key=key).select(one),
}


def part(make: Make) -> Fragment:
    db = Database()
    relation = make(db.table(tuple, name="a"), db.table(tuple, name="b"))
    return offloaded_fragment(db._engine.queries.optimize(relation.plan).plan)


def remote_of(offload: SparkOffload, of: Fragment, folder: Any) -> BucketedRemote:
    return BucketedRemote(offload.session, of, str(folder), stable=True, trust=True)


SAMPLE = (
    *("distinct", "difference_all", "full_join", "join with a condition", "join and select"),
    *("Min and Max", "an aggregate"),
)
"""The sample of a short run. `test_parity` has all kinds, with rows of any keys."""


@pytest.mark.parametrize("name", PARTS if TIMES else SAMPLE)
def test_a_part_is_what_it_is_in_memory(
    name: str, session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS[name])
    history = History(len(name), len(of.prepare))
    twins = Twins(of, remote_of(offload, of, tmp_path), len(name))
    twins.apply(history.changes(60), quiet=True)
    for size in (1, 30, 3, 5):
        twins.apply(history.changes(size))
    twins.remote.close()


def test_files_that_are_put_together_hold_the_same(
    session: Any, offload: SparkOffload, tmp_path: Any, monkeypatch: Any
) -> None:
    """First into one file, then into a base of several buckets."""
    monkeypatch.setattr("spark_backend.state.tables.MOST_SEGMENTS", 2)
    monkeypatch.setattr("spark_backend.state.tables.PER_BUCKET", 8)
    of, history = part(PARTS["full_join"]), History(7, 2)
    remote = remote_of(offload, of, tmp_path)
    twins = Twins(of, remote)
    for size in (3, 3, 3, 3, 60, 60, 5, 1):
        twins.apply(history.changes(size))
    assert remote._tables.buckets(remote._rows) > 1
    assert max(len(found) for found in remote._tables.manifest.tables.values()) <= 4
    remote.close()


@pytest.mark.quick
@pytest.mark.usefixtures("by_jobs")
def test_a_flush_reads_the_buckets_that_it_touches_and_writes_a_file_for_each_table(
    session: Any, offload: SparkOffload, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("spark_backend.state.tables.PER_BUCKET", 10)
    of = part(PARTS["Min and Max"])
    remote = remote_of(offload, of, tmp_path)
    rows = [((number, 1), 1) for number in range(80)]
    remote.apply(0, keyed(of, remote, rows), quiet=True)
    assert remote._tables.buckets(remote._rows) == 8
    given = keyed(of, remote, [((1, 5), 1)])
    touched = remote._touched_rows(
        remote._tables.parts(remote._rows)[0], {given[0][1]}, session.spark.range(0), 1
    )
    assert len(touched.collect()) == 1
    scan = touched._jdf.queryExecution().executedPlan().collectLeaves().head()
    assert scan.metrics().apply("numFiles").value() == 1
    before = jobs(session)
    assert dict(remote.apply(1, given)) == {(1, 1, 1, 1): -1, (1, 1, 5, 2): 1}
    assert jobs(session) == before + 1
    files = [len(found[-1].files) for found in remote._tables.manifest.tables.values()]
    assert files == [1, 1]
    remote.close()


def test_rows_that_are_equal_but_written_otherwise_cancel(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["distinct"])
    remote = remote_of(offload, of, tmp_path)
    remote.apply(0, entries(remote, [((1, -0.0), 1), ((2, 1), 1)]), quiet=True)
    assert list(remote.apply(1, entries(remote, [((True, 0), -1)]))) == [((1, 0.0), -1)]
    assert [(row, weight) for _, _, row, weight in remote.entries()] == [
        (remote.pack(0, (2, 1), (2, 1))[1], 1)
    ]
    assert list(remote.contents()) == [((2, 1), 1)]
    remote.close()


def test_the_same_number_is_taken_in_once(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["distinct"])
    remote = remote_of(offload, of, tmp_path)
    given = entries(remote, [((1, 1), 1)])
    assert list(remote.apply(0, given)) == [((1, 1), 1)]
    assert list(remote.apply(0, given)) == [((1, 1), 1)]
    assert list(remote.apply(1, entries(remote, [((1, 1), -1)]))) == [((1, 1), -1)]
    assert list(remote.contents()) == []
    remote.close()


def test_what_a_callable_raises_comes_out_of_the_flush_with_its_row(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    """A failed flush writes nothing; the next changes are applied together with it."""
    of = part(PARTS["join with a condition"])
    remote = remote_of(offload, of, tmp_path)

    def given(place: int, row: Any, weight: int) -> Any:
        return (place, *remote.pack(place, 1, row), weight)

    first = [given(0, (1, 2), 1), given(1, (1, "text"), 1)]
    for _ in range(2):
        with pytest.raises(TakenIn, match=r"TypeError: '<=' not .*\n?.*on row .*'text'"):
            remote.apply(0, first)
    assert list(remote.contents()) == []
    with pytest.raises(TakenIn, match="on row"):
        remote.apply(1, [given(1, (1, 7), 1)])
    assert list(remote.apply(2, [given(1, (1, "text"), -1)])) == [(((1, 2), (1, 7)), 1)]
    assert list(remote.contents()) == [(((1, 2), (1, 7)), 1)]
    remote.close()


def leaves(a: Any, b: Any) -> bool:
    """A condition that ends its process."""
    return sys.exit("no more")


def test_a_callable_that_leaves_its_process_is_told_after_the_first_try(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(lambda a, b: a.join(b, on=leaves, left_key=key, right_key=key))
    remote = remote_of(offload, of, tmp_path)
    given = [(place, *remote.pack(place, 1, (1, place)), 1) for place in (0, 1)]
    before = jobs(session)
    with pytest.raises(TakenIn, match="SystemExit: no more"):
        remote.apply(0, given)
    assert jobs(session) == before + 1
    remote.close()


def test_contents_do_not_depend_on_how_they_are_read(
    session: Any, offload: SparkOffload, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("spark_backend.state.tables.PER_BUCKET", 20)
    of = part(PARTS["distinct"])
    remote = remote_of(offload, of, tmp_path)
    rows = [(Inner(number), math.nan) for number in range(200)]
    remote.apply(0, entries(remote, [(row, 1) for row in rows]), quiet=True)
    remote.apply(1, entries(remote, [((Inner(-1), 1), 1)]))
    tables = list(remote._tables.pieces(remote._output))
    assert len(tables) == 10
    assert sum(table.num_rows for table in tables) == 201
    buckets = [set(table["bucket"].to_pylist()) for table in tables]
    assert sum(map(len, buckets)) == len(set().union(*buckets))
    assert remote.footprint()[0] == 201
    assert {row for row, _ in remote.contents()} == {*rows, (Inner(-1), 1)}
    remote.close()


def jobs(session: Any) -> int:
    scheduler = session.spark.sparkContext._jsc.sc().dagScheduler()
    return int(scheduler.numTotalJobs())


def keyed(of: Fragment, remote: BucketedRemote, pairs: list[tuple[Any, int]]) -> list[Any]:
    prepared = [(of.prepare[0](row), weight) for row, weight in pairs]
    return [(0, *remote.pack(0, *found), weight) for found, weight in prepared if found]


def entries(remote: BucketedRemote, pairs: list[tuple[Any, int]]) -> list[Any]:
    return [(0, *remote.pack(0, row, row), weight) for row, weight in pairs]
