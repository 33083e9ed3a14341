"""Sums by group on Spark: after every flush what the operator in the process has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")
import pyarrow as pa
import pyarrow.parquet as pq

from optimizer import plan
from reactive import Avg, Collect, Count, Database, Max, Sum
from reactive.engine.collections.zset import NAN, consolidate
from reactive.engine.operators.aggregate import GroupAggregates
from reactive.engine.remote.fragments import Fragment, offloaded_fragment
from reactive.engine.remote.remote import BEFORE, Entry, ExternalInput, Remote
from reactive.errors import OffloadError
from spark_backend.bucketed.grouped_sums import is_sums_only
from spark_backend.bucketed.remote import BucketedRemote
from spark_backend.cluster.session import Session
from spark_backend.tables.frames import Frames
from tests.engine.remote.in_memory import InMemory

Change = tuple[Any, int]


class Point(NamedTuple):
    x: int
    y: Any


PLAIN = [0, 1, -3, True, 0.1, 0.2, -0.3, 1e15, -0.0, 2.5, 10**12, 1e-9]
HARD = [*PLAIN, NAN, math.inf, -math.inf, 1e300, -1e300, 5e-324, 2**63, -(10**30), 2**53 + 1]
EXACT = [Decimal("0.10"), Decimal("-3.3"), Decimal("1E+30"), Decimal("1E-20"), Decimal(7), 2, True]
MIXED = [Fraction(1, 3), Fraction(-7, 5), 0.1, 2, 1e16]
SPANS = [timedelta(seconds=1), timedelta(days=-3), timedelta(microseconds=7)]
GROUPS: list[tuple[list[Any], list[Any]]] = [
    ([1, True, 1.0, Decimal(1)], PLAIN),
    ([None, "a", "b", ("a", 1), Point(1, None), (1, None), 7, 0.5], PLAIN),
    ([NAN, ("x", NAN), 10**30], HARD),
    (["hard", frozenset({1, "a"})], HARD),
    (["money", Fraction(1, 3)], EXACT),
    (["mixed"], MIXED),
    (["spans"], SPANS),
]
"""Groups, and the values that occur in them; some of the groups are equal to each other."""


Made = Callable[[Fragment], BucketedRemote]


@pytest.fixture
def made(session: Session, tmp_path: Path) -> Iterator[Made]:
    """Makes remotes; one after the other has the same folder."""
    remotes = []

    def make(of: Fragment) -> BucketedRemote:
        remotes.append(BucketedRemote(session, of, str(tmp_path / "part"), stable=True, trust=True))
        return remotes[-1]

    yield make
    for remote in remotes:
        remote.stop()


def key(row: Any) -> Any:
    return row[0]


def value(row: Any) -> Any:
    return row[1]


def other(row: Any) -> Any:
    return row[2]


def second(group: Any, count: int, total: Any) -> int:
    return count


def all_three() -> Fragment:
    return part(Count(), Sum(value), Avg(other))


def part(*aggregates: Any) -> Fragment:
    rows = Database().table(tuple)
    return offloaded_fragment(rows.group_by(key).aggregate(*aggregates).plan)


def in_process(of: Fragment) -> GroupAggregates:
    """The operator itself, over the rows that the part keeps."""
    assert isinstance(of.node, plan.Aggregate)
    folds = [
        (a.accumulator, lambda row, at=at: row[at]) for at, a in enumerate(of.node.aggregates, 1)
    ]
    return GroupAggregates(lambda row: row[0], folds)


def step(of: Fragment, operator: GroupAggregates, changes: list[Change]) -> list[Any]:
    """Return the output of the operator for changes."""
    prepared = [(of.prepare[0](row), weight) for row, weight in changes]
    out = operator.step([(found[1], weight) for found, weight in prepared if found])
    operator.commit()
    return out


def entries(of: Fragment, remote: Remote, changes: list[Change]) -> list[Entry]:
    prepared = [(of.prepare[0](row), weight) for row, weight in changes]
    return [(0, *remote.pack(0, *found), weight) for found, weight in prepared if found]


def history(random: Random, flushes: int, *, groups: Any = GROUPS) -> Iterator[list[Change]]:
    """Changes that add rows and take away some that are there."""
    there: list[Any] = []
    for _ in range(flushes):
        changes: list[Change] = []
        for _ in range(random.choice([1, 3, 30])):
            if there and random.random() < 0.45:
                changes.append((there.pop(random.randrange(len(there))), -1))
            else:
                keys, values = random.choice(groups)
                row = (random.choice(keys), random.choice(values), random.choice(values))
                weight = random.choice([1, 1, 1, 2, 5])
                there += [row] * weight
                changes.append((row, weight))
        if random.random() < 0.1:
            changes += [(row, -1) for row in there]
            there.clear()
        yield changes


def typed(pairs: Any) -> set[Any]:
    """Return rows with weights and the types of the sums, unordered."""
    return {(row, weight, *map(type, row[1:])) for row, weight in pairs}


@pytest.mark.parametrize("seed", range(2))
def test_every_flush_gives_what_the_operator_gives(made: Made, seed: int) -> None:
    of = all_three()
    remote = made(of)
    operator = in_process(of)
    shown: dict[Any, int] = {}
    for number, changes in enumerate(history(Random(seed), 8)):
        expected = step(of, operator, changes)
        delta = remote.apply(number, entries(of, remote, changes))
        assert dict(consolidate(delta)) == dict(consolidate(expected)), (seed, number)
        shown = dict(consolidate([*shown.items(), *delta]))
        assert typed(remote.contents()) == typed(operator.contents()), (seed, number)
        assert shown == dict(operator.contents()), (seed, number)
        assert remote.footprint()[0] == len(operator.groups)


def test_it_equals_the_reference_and_goes_on_after_a_restart(made: Made) -> None:
    of = all_three()
    reference = InMemory(of)
    for number, changes in enumerate(history(Random(3), 6, groups=GROUPS[:4])):
        remote = made(of)
        assert remote.resumed == (number - 1 if number else None)
        given = entries(of, remote, changes)
        expected = reference.apply(number, entries(of, reference, changes))
        is_quiet = number in (0, 3)
        delta = remote.apply(number, given, quiet=is_quiet)
        assert dict(consolidate(delta)) == ({} if is_quiet else dict(expected))
        assert dict(remote.contents()) == dict(reference.contents())
        assert remote.footprint()[0] == len(list(reference.contents()))
        remote.stop()


def test_a_later_process_goes_on_with_the_difference(made: Made) -> None:
    """The old state is subtracted as sums of groups; the current rows are added one by one."""
    of = all_three()
    first, operator = made(of), in_process(of)
    *before, now = list(history(Random(11), 4))
    for number, changes in enumerate(before):
        first.apply(number, entries(of, first, changes))
        step(of, operator, changes)
    held = dict(first.contents())
    first.stop()
    later = made(of)
    kept = [(*entry, -weight) for *entry, weight in later.entries()]
    wanted = entries(of, later, [change for changes in (*before, now) for change in changes])
    delta = later.apply(len(before), [*kept, *wanted])
    assert dict(consolidate(delta)) == dict(consolidate(step(of, operator, now)))
    assert dict(consolidate([*held.items(), *delta])) == dict(operator.contents())
    assert typed(later.contents()) == typed(operator.contents())


def test_a_number_that_comes_again_is_taken_in_once(made: Made) -> None:
    of = part(Count(), Sum(value))
    remote = made(of)
    given = entries(of, remote, [(("a", 0.5), 1), (("b", 1), 2)])
    first = remote.apply(0, given)
    assert remote.apply(0, given) == first
    assert dict(remote.apply(1, entries(of, remote, [(("a", 1), 1)]))) == {
        ("a", 1, 0.5): -1,
        ("a", 2, 1.5): 1,
    }
    assert list(remote.apply(2, entries(of, remote, [(("a", 1), 1), (("a", 1), -1)]))) == []


def test_one_entry_is_kept_of_a_group_and_none_of_an_empty_one(
    made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_backend.state.tables.PER_BUCKET", 3)
    of = all_three()
    remote, operator = made(of), in_process(of)
    for number, changes in enumerate(history(Random(5), 8)):
        delta = remote.apply(number, entries(of, remote, changes))
        expected = step(of, operator, changes)
        assert dict(consolidate(delta)) == dict(consolidate(expected)), number
        assert [weight for *_, weight in remote.entries()] == [1] * len(operator.groups)
    assert remote._tables.buckets(remote._rows) > 1
    groups = [key for key, _ in ((row[0], n) for row, n in operator.contents())]
    for group in groups:
        near = [row for row, _ in remote.at(remote.bucket(group))]
        assert [row for row, _ in operator.contents() if row[0] == group] == [
            row for row in near if row[0] == group
        ]


def test_groups_come_back_as_what_they_were_given(made: Made) -> None:
    of = part(Sum(value))
    remote = made(of)
    groups = [Point(1, "a"), 2.0, True, ("a", 1), Decimal("1.5"), None, b"x", frozenset({3})]
    delta = remote.apply(0, entries(of, remote, [((group, 1), 1) for group in groups]))
    assert sorted(map(repr, groups)) == sorted(repr(row[0]) for row, _ in delta)
    assert sorted(map(repr, groups)) == sorted(repr(row[0]) for row, _ in remote.contents())


def test_sums_of_decimals_keep_their_places(made: Made) -> None:
    of = part(Sum(value))
    remote = made(of)
    for number in range(3):
        delta = remote.apply(number, entries(of, remote, [(("a", Decimal("0.10")), 2)]))
    assert [str(row[1]) for row, _ in delta] == ["0.40", "0.60"]
    assert [str(row[1]) for row, _ in remote.contents()] == ["0.60"]


def test_values_that_cannot_be_added_to_each_other_are_told(made: Made) -> None:
    of = part(Sum(value))
    remote = made(of)
    with pytest.raises(OffloadError, match="TypeError: unsupported operand"):
        remote.apply(0, entries(of, remote, [(("a", Decimal(1)), 1), (("a", 0.5), 1)]))


class Alone:
    """Equal to nothing but itself."""


def test_what_has_no_sum_or_no_bytes_is_refused_when_it_comes(made: Made) -> None:
    of = part(Sum(value))
    remote = made(of)
    with pytest.raises(TypeError):
        entries(of, remote, [(("a", "text"), 1)])
    with pytest.raises(TypeError):
        entries(of, remote, [(("a", None), 1)])
    with pytest.raises(OffloadError, match="no stable hash"):
        entries(of, remote, [((Alone(), 1), 1)])


@dataclass(frozen=True)
class Sale:
    customer: str | None
    price: float
    count: int


@pytest.mark.quick
def test_rows_on_spark_are_summed_there(made: Made, session: Session, tmp_path: Path) -> None:
    """The first rows are applied quietly, later ones together with rows of the process."""
    random = Random(1)
    prices = [0.1, 1e300, math.inf, 7.25, -0.1, 1e-9]
    sales = [
        Sale(random.choice(["a", "b", None]), random.choice(prices), random.randrange(5))
        for _ in range(50)
    ]
    columns = {name: [getattr(s, name) for s in sales] for name in ("customer", "price", "count")}
    pq.write_table(pa.table(columns), tmp_path / "sales.parquet")
    frames = Frames(session, str(tmp_path / "sales.parquet"), Sale, str(tmp_path / "changes"))
    query = Database().table(Sale).where(lambda s: s.count > 0)
    groups = query.group_by(lambda s: s.customer)
    of = offloaded_fragment(
        groups.aggregate(Count(), Sum(lambda s: s.price), Avg(lambda s: s.count)).plan
    )
    rows: Any = SimpleNamespace(frames=frames)
    remote, operator = made(of), in_process(of)
    chain = (query.plan,)
    step(of, operator, [(s, 1) for s in sales if s.count])
    assert remote.apply(0, [], [ExternalInput(0, rows, chain, BEFORE, 0)], quiet=True) == ()
    assert typed(remote.contents()) == typed(operator.contents())
    later = frames.change([(sales[0], -1), (Sale("c", 5.0, 1), 2), (Sale("c", 5.0, 0), 2)])
    own = [(Sale("a", math.nan, 1), 1)]
    changes = [*((s, n) for s, n in [(sales[0], -1), (Sale("c", 5.0, 1), 2)] if s.count), *own]
    delta = remote.apply(1, entries(of, remote, own), [ExternalInput(0, rows, chain, 0, later)])
    assert dict(consolidate(delta)) == dict(consolidate(step(of, operator, changes)))
    assert typed(remote.contents()) == typed(operator.contents())
    assert remote.footprint()[0] == 4


def test_what_looks_at_groups_one_by_one_goes_along(made: Made) -> None:
    db = Database()
    totals = db.table(tuple).group_by(key).aggregate(Count(), Sum(value))
    of = offloaded_fragment(db._engine.queries.optimize(totals.select(second).plan).plan)
    assert is_sums_only(of.node)
    remote, reference = made(of), InMemory(of)
    for number, changes in enumerate([[(("a", 1), 2), (("b", 1), 2)], [(("a", 2), 1)]]):
        wanted = reference.apply(number, entries(of, reference, changes))
        assert dict(remote.apply(number, entries(of, remote, changes))) == dict(wanted)
        assert dict(remote.contents()) == dict(reference.contents())
    assert remote.footprint()[0] == 2
    assert list(remote.at(remote.bucket("a"))) == [(3, 1)]


def test_of_aggregates_that_are_linear_sums_are_kept_and_of_others_rows() -> None:
    assert is_sums_only(part(Count()).node)
    assert is_sums_only(all_three().node)
    assert not is_sums_only(part(Count(), Max(value)).node)
    assert not is_sums_only(part(Collect(value)).node)
    rows = Database().table(int)
    assert not is_sums_only(offloaded_fragment(rows.distinct().plan).node)
