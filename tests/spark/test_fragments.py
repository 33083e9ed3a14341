"""Whole fragments in columns: after every flush what plain evaluation of the query gives."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

from reactive import Avg, Count, Database, Sum
from reactive.engine.remote.fragments import whole_fragment
from reactive.errors import OffloadError
from spark_backend.aggregates import totals
from spark_backend.cluster.session import Session
from spark_backend.fragments.remote import StateRemote
from spark_backend.fragments.roster import can_be_columns
from spark_backend.state import tables
from spark_backend.state.manifest import Segment
from spark_backend.state.one_job import TableSpec
from spark_backend.state.tables import StateTables
from spark_backend.steps import step
from tests.budget import TIMES, cases, sampled
from tests.spark.fragments import Customer, Order, Query, check, fragment_of

QUERIES: dict[str, Query] = {
    "join, sum": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .group_by(lambda o, c: c.town)
        .aggregate(
            *(Count(), Sum(lambda o, c: o.amount), Avg(lambda o, c: o.amount * c.rate)),
            Sum(lambda o, c: o.id * 10 - 10),
        )
    ),
    "join by floats, None equals None": lambda o, c: o.join(
        c, on=lambda o, c: o.amount == c.rate and o.tag == c.tag
    ),
    "join with more conditions": lambda o, c: (
        o.where(lambda o: o.amount > 0.5)
        .join(c, on=lambda o, c: o.customer == c.id and o.amount < c.rate and c.town == "a")
        .select(lambda o, c: (c.town, o.tag))
    ),
    "join of a join": lambda o, c: (
        o.join(c, on=lambda o, c: o.customer == c.id)
        .join(o, on=lambda o, c, p: p.id == c.id)
        .select(lambda o, c, p: (o.id, c.town, p.amount))
    ),
    "self join": lambda o, c: o.join(o, on=lambda a, b: a.customer == b.id).select(
        lambda a, b: (a.tag, b.tag)
    ),
    "semi join": lambda o, c: o.semi_join(c, on=lambda o, c: o.amount == c.rate),
    "anti join": lambda o, c: o.anti_join(c, on=lambda o, c: o.amount == c.rate and c.town == "a"),
    "left join": lambda o, c: o.left_join(c, on=lambda o, c: o.customer == c.id),
    "right join": lambda o, c: o.right_join(c, on=lambda o, c: o.tag == c.tag),
    "full join": lambda o, c: o.full_join(c, on=lambda o, c: o.amount == c.rate),
    "semi join with more conditions": lambda o, c: o.semi_join(
        c, on=lambda o, c: o.customer == c.id and o.amount < c.rate
    ),
    "anti join with more conditions": lambda o, c: o.anti_join(
        c, on=lambda o, c: o.tag == c.tag and o.amount < c.rate and o.id > 3
    ),
    "full join with more conditions": lambda o, c: o.full_join(
        c, on=lambda o, c: o.customer == c.id and o.amount < c.rate and c.town == "a" and o.id > 3
    ),
    "distinct, counted": lambda o, c: (
        o.select(lambda o: (o.customer, o.amount))
        .distinct()
        .group_by(lambda t: t[1])
        .aggregate(Count())
    ),
    "union": lambda o, c: o.select(lambda o: o.tag).union(c.select(lambda c: c.tag)),
    "union_all, distinct": lambda o, c: (
        o.select(lambda o: o.id).union_all(c.select(lambda c: c.id)).distinct()
    ),
    "difference": lambda o, c: o.select(lambda o: o.tag).difference(c.select(lambda c: c.tag)),
    "difference_all": lambda o, c: o.select(lambda o: o.id).difference_all(
        c.select(lambda c: c.id)
    ),
    "intersection": lambda o, c: o.select(lambda o: o.tag).intersection(c.select(lambda c: c.tag)),
    "intersection_all": lambda o, c: o.select(lambda o: o.amount).intersection_all(
        c.select(lambda c: c.rate)
    ),
}
SAMPLE = (
    *("join, sum", "join of a join", "anti join", "distinct, counted"),
    *("difference", "anti join with more conditions", "full join with more conditions"),
)
"""The sample of a short run: each kind of step."""


@pytest.fixture(params=cases("at their lowest", "as they are"))
def compaction(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "at their lowest":
        monkeypatch.setattr(tables, "MOST_SEGMENTS", 1)
        monkeypatch.setattr(tables, "PER_BUCKET", 3)
        monkeypatch.setattr(tables, "ROWS_OF_GROUP", 1)
        monkeypatch.setattr(tables, "SHARE", 0.5)
    return str(request.param)


@pytest.mark.parametrize("name", QUERIES if TIMES else SAMPLE)
def test_after_every_flush_the_output_is_that_of_the_query(
    name: str, session: Session, tmp_path: Path, compaction: str
) -> None:
    check(session, QUERIES[name], tmp_path, seed=len(name))


@pytest.mark.quick
def test_a_flush_that_is_done_again_gives_the_same_and_adds_nothing(
    session: Session, tmp_path: Path
) -> None:
    fragment = fragment_of(QUERIES["join, sum"])
    remote = StateRemote(session, fragment, str(tmp_path), stable=True)
    entries = [(0, 0, Order(1, 2, 0.5, None), 1), (1, 0, Customer(2, "a", 1.0, None), 1)]
    first = sorted(remote.apply(0, entries))
    assert first == [(("a", 1, 0.5, 0.5, 0), 1)]
    assert sorted(remote.apply(0, entries)) == first
    assert dict(remote.contents()) == dict(first)


def test_a_later_remote_goes_on_from_what_is_there(session: Session, tmp_path: Path) -> None:
    fragment = fragment_of(QUERIES["join, sum"])
    one = StateRemote(session, fragment, str(tmp_path), stable=True)
    customer = Customer(2, "a", 1.0, None)
    one.apply(0, [(0, 0, Order(1, 2, 0.5, None), 1), (1, 0, customer, 1)])
    one.stop()
    other = StateRemote(session, fragment, str(tmp_path), stable=True)
    assert other.resumed == 0
    assert sorted((place, row) for place, _, row, _ in other.entries()) == [
        (0, Order(1, 2, 0.5, None)),
        (1, customer),
    ]
    assert sorted(other.apply(1, [(1, 0, customer, -1)])) == [(("a", 1, 0.5, 0.5, 0), -1)]
    assert list(other.contents()) == []


def test_state_of_another_plan_is_refused(session: Session, tmp_path: Path) -> None:
    one = StateRemote(session, fragment_of(QUERIES["semi join"]), str(tmp_path), stable=True)
    one.apply(0, [(0, 0, Order(1, 2, 0.5, None), 1)])
    with pytest.raises(OffloadError, match="is of another query"):
        StateRemote(session, fragment_of(QUERIES["anti join"]), str(tmp_path), stable=True)


def test_a_row_is_found_by_its_group(session: Session, tmp_path: Path) -> None:
    remote = StateRemote(
        session, fragment_of(QUERIES["distinct, counted"]), str(tmp_path), stable=False
    )
    remote.apply(0, [(0, 0, Order(n, n, float(n % 2), None), 1) for n in range(6)])
    assert list(remote.at(remote.bucket(1.0))) == [((1.0, 3), 1)]
    assert list(remote.at(remote.bucket(True))) == [((1.0, 3), 1)]
    assert list(remote.at(remote.bucket("a"))) == []


def test_a_look_up_reads_one_bucket_of_the_base_and_what_came_later(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 6)
    monkeypatch.setattr(tables, "ROWS_OF_GROUP", 1)
    remote = StateRemote(
        session, fragment_of(QUERIES["distinct, counted"]), str(tmp_path), stable=False
    )
    remote.apply(0, [(0, 0, Order(n, n, float(n % 12), None), 1) for n in range(24)])
    remote.apply(1, [(0, 0, Order(99, 99, 7.0, None), 1)])
    found = remote.shared.tables.manifest.tables
    base, later = next(of for name, of in found.items() if name.startswith("output"))
    assert (base.buckets, later.is_base) == (4, False)
    read: list[Segment] = []
    real = StateTables._fetch_rows

    def spied(
        state: StateTables, spec: TableSpec, segments: list[Segment], where: Any = None
    ) -> Any:
        read.extend(segments)
        return real(state, spec, segments, where)

    monkeypatch.setattr(StateTables, "_fetch_rows", spied)
    for key in range(12):
        read.clear()
        assert list(remote.at(float(key))) == [((float(key), 3 if key == 7 else 2), 1)]
        of_base = {file.partition("/")[0] for s in read if s.is_base for file in s.files}
        assert len(of_base) == 1


SPREAD = ("join of a join", "distinct, counted", "union")
"""The sample for both ways of a short run: jobs with sums take long to plan."""


@sampled
@pytest.mark.parametrize(
    ("name", "read"),
    [*product(("join, sum", *SPREAD) if TIMES else SPREAD, (10**6, 20))]
    + ([] if TIMES else [("join, sum", 10**6)]),
)
def test_a_flush_of_few_rows_reads_the_buckets_of_its_keys_or_else_spreads_over_tasks(
    name: str, read: int, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 3)
    monkeypatch.setattr(tables, "ROWS_OF_GROUP", 1)
    monkeypatch.setattr(step, "MOST_WHOLE", 0)
    monkeypatch.setattr(totals, "MOST_WHOLE", 0)
    monkeypatch.setattr(step, "MOST_READ", read)
    monkeypatch.setattr(tables, "SHARE", 100.0)  # no base is made again
    check(session, QUERIES[name], tmp_path, seed=len(name), odd=False)


@pytest.mark.usefixtures("by_jobs")
def test_a_flush_of_a_row_is_one_job_of_one_task_whose_keys_are_known_without_one(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 3)
    monkeypatch.setattr(tables, "ROWS_OF_GROUP", 1)
    monkeypatch.setattr(step, "MOST_WHOLE", 0)
    fragment = fragment_of(lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id))
    remote = StateRemote(session, fragment, str(tmp_path), stable=False)
    orders = [(0, 0, Order(n, n % 20, 0.5, None), 1) for n in range(40)]
    customers = [(1, 0, Customer(n, "a", 1.0, None), 1) for n in range(20)]
    remote.apply(0, [*orders, *customers])
    read: list[tuple[Any, set[int] | None]] = []
    real = StateTables.near

    def spied(state: StateTables, spec: TableSpec, hashes: Any = None) -> Any:
        read.append((spec.name, hashes))
        return real(state, spec, hashes)

    monkeypatch.setattr(StateTables, "near", spied)
    jobs = session.spark.sparkContext._jsc.sc().statusStore()
    before = _jobs(jobs)
    row = Order(99, 7, 1.0, None)
    assert list(remote.apply(1, [(0, 0, row, 1)])) == [((row, Customer(7, "a", 1.0, None)), 1)]
    assert [len(hashes or ()) for _, hashes in read] == [1]
    assert [tasks for number, tasks in _jobs(jobs).items() if number not in before] == [1]


def test_rows_are_added_up_for_a_reader_only_where_some_were_taken_away(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "PER_BUCKET", 3)
    monkeypatch.setattr(tables, "ROWS_OF_GROUP", 1)
    fragment = fragment_of(lambda o, c: o.join(c, on=lambda o, c: o.customer == c.id))
    remote = StateRemote(session, fragment, str(tmp_path), stable=False)
    town = Customer(1, "a", 1.0, None)
    orders = [Order(n, 1, 0.5, None) for n in range(4)]
    changes: list[tuple[dict[int, int], bool]] = [
        ({0: 2, 1: 1, 2: 1, 3: 3}, False),
        ({0: 1, 3: 1}, False),
        ({0: -1, 1: -1, 2: 1}, True),
        ({0: -2, 3: -4}, True),
    ]
    shown = Counter[int]()
    for number, (change, is_added_up) in enumerate(changes):
        entries: Any = [(0, 0, orders[n], weight) for n, weight in change.items()]
        remote.apply(number, [*entries, *([(1, 0, town, 1)] * (number == 0))])
        shown.update(change)
        found = remote.to_spark()
        assert Counter(row[0].id for row in found.collect()) == +shown
        assert ("Aggregate" in found._jdf.queryExecution().executedPlan().toString()) == is_added_up
        assert remote.size() == shown.total()


def _jobs(store: Any) -> dict[int, int]:
    """The number of tasks of each job, by its number."""
    jobs = store.jobsList(None)
    return {j.jobId(): j.numTasks() for j in (jobs.apply(n) for n in range(jobs.size()))}


@pytest.mark.parametrize(
    "query",
    [
        lambda o, c: o.group_by(lambda o: o.tag).reduce(lambda k, rows: [max(o.id for o in rows)]),
        lambda o, c: o.select(lambda o: frozenset([o.tag])).distinct(),
        lambda o, c: o.join(c, on=lambda o, c: o.amount < c.rate),
        lambda o, c: o.semi_join(c, on=lambda o, c: o.id == c.id and 1 / o.amount < c.rate),
    ],
    ids=["whole groups", "no column", "no key", "a condition may raise"],
)
def test_what_columns_do_not_do_as_python_does_is_refused(query: Query, session: Session) -> None:
    db = Database()
    orders, customers = db.table(Order), db.table(Customer)
    optimized = db._engine.queries.optimize(query(orders, customers).plan).plan
    found = whole_fragment(optimized, lambda node: False)
    assert found is None or not can_be_columns(session, found)
