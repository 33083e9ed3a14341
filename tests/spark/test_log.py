"""A part that Spark keeps is what the reference in memory is, after every flush."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from reactive import (
    Aggregate,
    Collect,
    Count,
    CountDistinct,
    Database,
    Max,
    Min,
    Monoid,
    OffloadError,
    Sum,
)
from reactive.remote.fragments import Fragment, part_of
from spark_backend import SparkOffload
from spark_backend.parts.log import LogRemote
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
    return part_of(db._engine.queries.optimized(relation.plan).plan)


def log(offload: SparkOffload, of: Fragment, folder: Any) -> LogRemote:
    return LogRemote(offload.session, of, str(folder), stable=True)


@pytest.mark.parametrize("name", PARTS)
def test_a_part_is_what_it_is_in_memory(
    name: str, session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS[name])
    history = History(len(name), len(of.prepare))
    twins = Twins(of, log(offload, of, tmp_path))
    twins.apply(history.changes(60), quiet=True)
    for size in (1, 30, 3):
        twins.apply(history.changes(size))
    twins.remote.close()


def test_a_new_generation_holds_the_same_and_fewer_entries(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["full_join"])
    history = History(7, 2)
    remote = log(offload, of, tmp_path)
    twins = Twins(of, remote)
    for _ in range(3):
        twins.apply(history.changes(40))
    mailbox = remote._stream.mailbox
    assert sum(mailbox.rows()) == 120
    remote._stream.renew(remote._stream.applied)
    assert mailbox.rows()[0] < 120
    assert mailbox.rows()[1] == 0
    twins.check()
    twins.apply(history.changes(10))
    remote.close()


def test_a_log_that_has_grown_begins_anew_by_itself(
    session: Any, offload: SparkOffload, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("spark_backend.cluster.stream.GROWN", 20)
    of = part(PARTS["distinct"])
    remote = log(offload, of, tmp_path)
    twins = Twins(of, remote)
    twins.apply([(0, (number, 1), 1) for number in range(5)])
    for sign in (1, -1, 1, -1):
        twins.apply([(0, (number, 2), sign) for number in range(8)])
    assert remote._stream.mailbox.generation == 1
    assert remote._stream.mailbox.rows() == (13, 8)
    remote.close()


def test_rows_that_are_equal_but_written_otherwise_cancel(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["distinct"])
    remote = log(offload, of, tmp_path)
    remote.apply(0, entries(remote, [((1, -0.0), 1), ((2, 1), 1)]), quiet=True)
    assert list(remote.apply(1, entries(remote, [((True, 0), -1)]))) == [((1, 0.0), -1)]
    remote._stream.renew(1)
    assert remote._stream.mailbox.rows() == (1, 0)
    assert [(row, weight) for _, _, row, weight in remote.entries()] == [
        (remote.pack(0, (2, 1), (2, 1))[1], 1)
    ]
    remote.close()


def test_the_same_number_is_taken_in_once(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["distinct"])
    remote = log(offload, of, tmp_path)
    given = entries(remote, [((1, 1), 1)])
    assert list(remote.apply(0, given)) == [((1, 1), 1)]
    assert list(remote.apply(0, given)) == [((1, 1), 1)]
    assert list(remote.apply(1, entries(remote, [((1, 1), -1)]))) == [((1, 1), -1)]
    assert list(remote.contents()) == []
    remote.close()


def test_what_a_callable_raises_comes_out_of_the_flush_with_its_row(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["join with a condition"])
    remote = log(offload, of, tmp_path)
    given = [(0, (1, 2)), (1, (1, "text"))]
    packed = [(place, *remote.pack(place, 1, row), 1) for place, row in given]
    for _ in range(2):
        with pytest.raises(OffloadError, match=r"TypeError: '<=' not .*\n?.*on row .*'text'"):
            remote.apply(0, packed)
    remote.close()


def test_contents_do_not_depend_on_how_they_are_read(
    session: Any, offload: SparkOffload, tmp_path: Any
) -> None:
    of = part(PARTS["distinct"])
    remote = log(offload, of, tmp_path)
    rows = [(Inner(number), math.nan) for number in range(200)]
    remote.apply(0, entries(remote, [(row, 1) for row in rows]), quiet=True)
    tables = list(remote._stream.mailbox.ranges(0, rows=20))
    assert len(tables) == 10
    assert sum(table.num_rows for table in tables) == 200
    buckets = [set(table["bucket"].to_pylist()) for table in tables]
    assert sum(map(len, buckets)) == len(set().union(*buckets))
    assert remote.footprint()[0] == 200
    remote.close()


def test_sums_go_to_the_jvm_and_the_rest_to_the_log(offload: SparkOffload) -> None:
    linear = offload.begin(part(grouped(Count(), Sum(value))), "sums")
    other = offload.begin(part(grouped(Count(), Min(value))), "least")
    assert [type(made).__name__ for made in (linear, other)] == ["TotalsRemote", "LogRemote"]
    linear.close()
    other.close()


def entries(remote: LogRemote, pairs: list[tuple[Any, int]]) -> list[Any]:
    return [(0, *remote.pack(0, row, row), weight) for row, weight in pairs]
