"""Best partners of a product in rounds: the rows of the reference, with and without numpy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf, nan
from random import Random
from typing import Any, NamedTuple

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.graphs import k_means as clusters
from optimizer.expr import Local, Operation, constant
from reactive import Avg, Count, Database, Max, Min, Sum, iterate
from reactive.engine.operators.loop.loop_recomputation import AdaptiveLoop
from reactive.engine.operators.loops.rounded_columns import find_least, round_column
from tests.budget import examples
from tests.counted_calls import calls_of

Rel = Any
NUMBERS = [0, 1, 2.5, -3, 0.1, 0.30000000000000004, 2**60, 1e200, -0.0, inf, nan, None, True]
PLAIN = [0, 1, 2, 3, 0.1, 0.2, 0.5, 1.5, -2.25]


class Spot(NamedTuple):
    """A row with any values."""

    x: Any
    y: Any


@dataclass(frozen=True)
class Hub:
    """A partner, of another class of rows."""

    id: Any
    x: Any
    y: Any


def _moved(groups: Rel, hubs: Rel) -> Rel:
    return groups.union_all(hubs.anti_join(groups, on=lambda old, new: old.id == new.id))


def nearest(spots: Rel, hubs: Rel) -> Rel:
    best = (
        spots.join(hubs)
        .group_by(lambda p, h: p)
        .aggregate(Min(lambda p, h: ((p.x - h.x) ** 2 + (p.y - h.y) ** 2, h.id)))
    )
    groups = best.group_by(lambda p, b: b[1]).aggregate(
        Avg(lambda p, b: p.x), Avg(lambda p, b: p.y)
    )
    return _moved(groups.select(lambda id, x, y: Hub(id, x, y)), hubs)


def farthest_with_hubs_first(spots: Rel, hubs: Rel) -> Rel:
    best = (
        hubs.join(spots)
        .group_by(lambda h, p: p)
        .aggregate(Max(lambda h, p: (abs(p.x - h.x) * 2 + p.y * h.y, h.id, p.x)))
    )
    groups = best.group_by(lambda p, b: b[1]).aggregate(
        Count(), Max(lambda p, b: p.y), Sum(lambda p, b: p.x)
    )
    return _moved(groups.select(lambda id, n, x, y: Hub(id, x, y + n)), hubs)


def by_a_part_of_the_spot(spots: Rel, hubs: Rel) -> Rel:
    """Several spots may have one key."""
    best = (
        spots.join(hubs)
        .group_by(lambda p, h: p.x)
        .aggregate(Min(lambda p, h: (p.y * h.y, h.id, -h.x)))
    )
    groups = best.group_by(lambda x, b: b[1]).aggregate(Max(lambda x, b: x))
    return _moved(groups.select(lambda id, x: Hub(id, x, 1)), hubs)


def by_the_hub(spots: Rel, hubs: Rel) -> Rel:
    """The side that changes in each round decides the groups."""
    best = (
        spots.join(hubs)
        .group_by(lambda p, h: h)
        .aggregate(Min(lambda p, h: ((p.x - h.x) * (p.x - h.x), p.y + 0)))
    )
    return best.select(lambda h, b: Hub(h.id, b[1], h.x))


def only_some(spots: Rel, hubs: Rel) -> Rel:
    """A condition on pairs, and one on the best value."""
    best = (
        spots.join(hubs)
        .where(lambda p, h: p.x != h.y)
        .group_by(lambda p, h: p)
        .aggregate(Min(lambda p, h: ((p.x - h.x) ** 2, h.id)))
        .where(lambda p, b: b[0] < 4)
    )
    groups = best.group_by(lambda p, b: b[1]).aggregate(Sum(lambda p, b: p.y))
    return _moved(groups.select(lambda id, y: Hub(id, y, y)), hubs)


def divided(spots: Rel, hubs: Rel) -> Rel:
    """A part of the value may raise."""
    best = (
        spots.join(hubs)
        .group_by(lambda p, h: p)
        .aggregate(Min(lambda p, h: (p.x * h.x, 0 if h.y == 0 else p.y / h.y, h.id)))
    )
    groups = best.group_by(lambda p, b: b[2]).aggregate(Sum(lambda p, b: p.y))
    return _moved(groups.select(lambda id, y: Hub(id, y, y)), hubs)


STEPS = (nearest, farthest_with_hubs_first, by_a_part_of_the_spot, by_the_hub, only_some, divided)


@pytest.fixture(params=[True, False], ids=["columns", "loops"])
def has_numpy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Evaluate rounds whole, over columns or without numpy."""
    monkeypatch.setattr(AdaptiveLoop, "_consider", lambda self, changed: None)
    found = numpy if request.param else None
    monkeypatch.setattr(
        "reactive.engine.operators.loops.best_partners.find_numpy", lambda rows: found
    )
    yield


@pytest.mark.usefixtures("has_numpy")
@pytest.mark.parametrize("values", [NUMBERS, PLAIN], ids=["any", "plain"])
@pytest.mark.parametrize("step", STEPS)
def test_rows_are_those_of_the_reference_after_each_commit(
    step: Callable[[Rel, Rel], Rel], values: list[Any]
) -> None:
    drawn = st.sampled_from(values)
    rows = st.one_of(
        st.tuples(st.just("spots"), st.builds(Spot, drawn, drawn)),
        st.tuples(st.just("hubs"), st.builds(Hub, st.sampled_from([1, 2, 2.0]), drawn, drawn)),
    )
    edits = st.lists(st.lists(st.tuples(st.booleans(), rows), max_size=6), min_size=1, max_size=6)

    @examples(30)
    @given(edits=edits, times=st.integers(1, 3))
    def run(edits: Any, times: int) -> None:
        db = Database()
        tables: dict[str, Any] = {
            "spots": db.table(Spot, name="spots"),
            "hubs": db.table(Hub, name="hubs"),
        }
        loop = iterate(lambda hubs: step(tables["spots"], hubs), tables["hubs"], times=times)
        view = loop.materialize()
        for transaction in edits:
            try:
                with db.transaction():
                    for is_new, (name, row) in transaction:
                        table = tables[name]
                        if is_new or row not in table:
                            table.add(row)
                        else:
                            table.remove(row)
            except Exception:
                pass  # `verify` tells whether the reference raises, too
            view.verify()

    run()


@pytest.mark.usefixtures("has_numpy")
def test_partners_that_do_not_compare_raise_also_if_another_one_is_nearer() -> None:
    db = Database()
    spots, hubs = db.table(Spot, name="spots"), db.table(Hub, name="hubs")
    view = iterate(lambda hubs: nearest(spots, hubs), hubs, times=2).materialize()
    hubs.add_all([Hub(1, 1, 1), Hub("b", 1, 1), Hub(2, 0, 0)])
    with pytest.raises(TypeError):
        spots.add(Spot(0, 0))
    view.verify()


@pytest.mark.usefixtures("has_numpy")
def test_centers_of_ties_and_of_random_points_are_those_of_a_plain_loop() -> None:
    rnd = Random(4)
    near = [0.1, 0.2, 0.7]
    points = [clusters.Point(rnd.choice(near), rnd.choice(near)) for _ in range(50)]
    points += [clusters.Point(rnd.uniform(-9, 9), rnd.uniform(-9, 9)) for _ in range(300)]
    starts = [clusters.Center(i, rnd.choice(near), rnd.choice(near)) for i in range(9)]
    db = Database()
    table, given = db.table(clusters.Point), db.table(clusters.Center)
    view = clusters.k_means(table, given, 4).materialize()
    given.add_all(starts)
    table.add_all(points)
    view.verify()
    table.remove_all(points[::3])
    view.verify()


def test_rounded_numbers_never_decide_against_python() -> None:
    """numpy squares by one multiplication, Python by `pow`: some results differ."""
    rnd = Random(1)
    mine = [rnd.uniform(-10, 10) for _ in range(40_000)]
    assert any(x**2 != x * x for x in mine)
    square = Operation("**", (Operation("-", (Local("x"), Local("c"))), constant(2)))
    theirs = [0.0, 1e-9, 3.3, 3.3000000000000003, -7.5]
    upright = numpy.array(theirs)[:, None]
    rounded = round_column(square, {"x": numpy.array(mine), "c": upright})
    found = find_least(numpy, rounded, (len(theirs), len(mine)), is_most=False)
    assert found is not None
    places, sure = found
    assert 0.3 < sure.mean() < 1
    for x, place, is_sure in zip(mine, places.tolist(), sure.tolist(), strict=True):
        exact = [(x - c) ** 2 for c in theirs]
        assert not is_sure or (exact.count(min(exact)) == 1 and exact.index(min(exact)) == place)


@pytest.mark.parametrize("has_columns", [True, False])
def test_calls_of_a_change_do_not_grow_with_the_pairs(
    has_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = numpy if has_columns else None
    monkeypatch.setattr(
        "reactive.engine.operators.loops.best_partners.find_numpy", lambda rows: found
    )
    rnd = Random(2)
    points = [clusters.Point(rnd.random(), rnd.random()) for _ in range(2_000)]
    db = Database()
    table, given = db.table(clusters.Point), db.table(clusters.Center)
    view = clusters.k_means(table, given, 10).materialize()
    given.add_all([clusters.Center(i, rnd.random(), rnd.random()) for i in range(4)])
    table.add_all(points)
    calls = calls_of(lambda: table.add(clusters.Point(0.5, 0.5)))
    visits = 10 * len(points)  # of each point in each round
    assert calls < (visits // 2 if has_columns else 5 * visits)
    view.verify()
