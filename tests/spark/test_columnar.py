"""Loops over columns: what passes over rows give, bit by bit, or nothing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import pytest

pytest.importorskip("pyspark")

import numpy as np
import pyarrow as pa

from optimizer.plans.clauses import apart_from_sides
from reactive import Count, Database, Min, Sum, iterate
from reactive.engine.remote.fragments import LEVEL
from spark_backend.codec.arrow import pairs_of, to_arrow
from spark_backend.codec.schema import kept_as
from spark_backend.columnar.plans import Groups
from spark_backend.columnar.trees import NotColumnar
from spark_backend.recursion.compile import _serialize_relations
from spark_backend.recursion.loop_worker import LoopTask, run_by_columns, run_loop
from tests.budget import seeds


class Rank(NamedTuple):
    page: int
    rank: float


class Link(NamedTuple):
    src: int
    dst: int
    share: float


def ranks(links: Any, **options: Any) -> Any:
    pages = links.select_many(lambda e: (e.src, e.dst)).distinct()
    counts = links.group_by(lambda e: e.src).aggregate(Count())
    shares = links.join(counts, on=lambda e, of: e.src == of[0]).select(
        lambda e, of: (e.dst, e.src, of[1], e.share)
    )
    nothing = pages.select(lambda page: Rank(page, 0.0))

    def step(now: Any) -> Any:
        given = now.join(shares, on=lambda r, s: r.page == s[1]).select(
            lambda r, s: Rank(s[0], r.rank / s[2])
        )
        total = given.union_all(nothing).group_by(lambda r: r.page).aggregate(Sum(lambda r: r.rank))
        return total.select(lambda page, rank: Rank(page, 0.15 + 0.85 * rank))

    return iterate(step, pages.select(lambda page: Rank(page, 1.0)), times=7, **options)


def factors(links: Any) -> Any:
    def better(one: Any, other: Any) -> Any:
        one = (
            links.join(other, on=lambda e, r: e.dst == r.page)
            .group_by(lambda e, r: e.src)
            .aggregate(Sum(lambda e, r: e.share * r.rank), Sum(lambda e, r: r.rank * r.rank))
            .select(lambda page, up, down: Rank(page, up / (down + 0.5)))
        )
        other = (
            links.join(one, on=lambda e, r: e.src == r.page)
            .group_by(lambda e, r: e.dst)
            .aggregate(Sum(lambda e, r: e.share - r.rank))
            .select(lambda page, total: Rank(page, total / 3))
        )
        return one, other

    return iterate(
        better,
        (
            links.select(lambda e: Rank(e.src, 1.0)).distinct(),
            links.select(lambda e: Rank(e.dst, 0.1)),
        ),
        times=3,
    )[0]


def labels(links: Any) -> Any:
    return iterate(
        lambda now: (
            now.join(links, on=lambda r, e: r[0] == e.src)
            .group_by(lambda r, e: e.dst)
            .aggregate(Min(lambda r, e: r[1] + e.src * 2))
            .select(lambda page, least: (page, least))
        ),
        links.select(lambda e: (e.src, e.dst)),
        times=4,
    )


NEAR: Any = {"tolerance": 0.05, "of": lambda r: r.rank, "by": lambda r: r.page}
QUERIES: dict[str, Any] = {
    "ranks": ranks,
    "ranks with a tolerance": lambda links: ranks(links, **NEAR),
    "two relations": factors,
    "labels": labels,
}


def task_of(query: Any) -> LoopTask:
    db: Any = Database()
    node = query(db.table(Link, name="links")).plan
    found = db._engine.queries.optimize(node).plan
    while not hasattr(found, "times"):
        (found,) = found.inputs()
    over, sides = apart_from_sides(found, LEVEL)
    assert len(sides) == 1
    kept = kept_as(tuple[int, int]) if query is labels else kept_as(Rank)
    kinds: Any = (*[kept] * len(found.names), kept_as(Link))
    return LoopTask(_serialize_relations(over), kinds, len(found.names))


def table(kept: Any, pairs: Sequence[tuple[Any, int]]) -> pa.Table:
    weights = pa.array([weight for _, weight in pairs], pa.int64())
    return pa.table({"row": to_arrow(kept, [row for row, _ in pairs]), "weight": weights})


@pytest.mark.quick
@pytest.mark.parametrize("seed", seeds(8))
@pytest.mark.parametrize("name", QUERIES)
def test_the_change_of_a_loop_is_that_of_passes_over_rows(name: str, seed: int) -> None:
    of, random = task_of(QUERIES[name]), Random(seed)
    link_kind: Any = of.kinds[-1]
    links, log = Counter[Any](), list[tuple[Any, int]]()
    before = [Counter[Any]() for _ in range(of.own)]
    for size in (0, 30, 1, 3, 20, 2):
        for _ in range(size):
            if links and random.random() < 0.4:
                row, weight = random.choice(list(links)), -1
            else:
                share = random.choice((0.1, 1 / 3, 2.0**-40, -3e7, 0.0))
                row, weight = Link(random.randrange(9), random.randrange(9), share), 1
            links[row] += weight
            links += Counter()
            log.append((row, weight))
        wanted = run_loop(of, [*before, links])
        given = [table(kept, list(b.items())) for kept, b in zip(of.kinds, before, strict=False)]
        found = run_by_columns(of, [*given, table(link_kind, log)])
        assert found is not None
        for kept, bag, pairs, changes in zip(of.kinds, before, wanted, found, strict=False):
            got = pairs_of(kept, changes)
            assert Counter(dict(got)) == Counter(dict(pairs))
            assert {repr(row) for row, _ in got} == {repr(row) for row, _ in pairs}
            for row, weight in got:
                bag[row] += weight
            bag += Counter()


@pytest.mark.parametrize("seed", seeds(20))
def test_sums_by_group_are_those_of_fsum(seed: int) -> None:
    random = Random(seed)
    reach = random.choice((0, 3, 20, 60, 300))
    count = random.randrange(1, 400)
    values = [random.uniform(-1, 1) * 2.0 ** random.randint(-reach, reach) for _ in range(count)]
    values += [-value for value in values[: count // 2]]
    keys = [random.randrange(random.choice((1, 7, 90))) for _ in values]
    groups = Groups(np.array(keys))
    found = dict(
        zip(groups.names.tolist(), groups.sums(float, np.array(values)).tolist(), strict=True)
    )
    by_key: dict[int, list[float]] = {}
    for key, value in zip(keys, values, strict=True):
        by_key.setdefault(key, []).append(value)
    assert found == {key: math.fsum(some) for key, some in by_key.items()}


def test_what_python_would_raise_or_have_no_number_for_is_not_done() -> None:
    of, kept = task_of(ranks), kept_as(Link)
    empty = table(of.kinds[0], [])
    for links in ([Link(1, 2, math.inf)], [Link(1, 2, math.nan)]):
        assert run_by_columns(of, [empty, table(kept, [(link, 1) for link in links])]) is None
    by_zero = task_of(
        lambda links: iterate(
            lambda now: (
                now.join(links, on=lambda r, e: r.page == e.src)
                .group_by(lambda r, e: e.dst)
                .aggregate(Sum(lambda r, e: r.rank / e.share))
                .select(lambda page, total: Rank(page, total))
            ),
            links.select(lambda e: Rank(e.src, 1.0)),
            times=3,
        )
    )
    for share, is_done in ((0.0, False), (0.5, True)):
        found = run_by_columns(by_zero, [empty, table(kept, [(Link(1, 2, share), 1)])])
        assert (found is not None) is is_done
    with pytest.raises(NotColumnar):
        Groups(np.array([1, 1])).sums(int, np.array([2**62, 2**62]))
