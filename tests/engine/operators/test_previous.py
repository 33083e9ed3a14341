"""`relation.previous()` against a history that is kept by hand, after every commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given

from reactive import Count, Database, OffloadError, PlanError, Sum, fixpoint
from tests.borders.offload.elsewhere import Elsewhere
from tests.budget import examples
from tests.random_queries.drawn import SEEDS
from tests.thresholds import drawn, thresholds

Bags = list[Counter[Any]]
"""The rows after each commit, from the one that the view was made at."""


def before(states: Bags, commits: int = 1) -> Counter[Any]:
    """The rows of some commits ago; of when it began, if that is later."""
    return states[max(0, len(states) - 1 - commits)]


def _joined(states: Bags) -> Counter[Any]:
    now, old = states[-1], before(states)
    return Counter({(a, b): n * m for a, n in now.items() for b, m in old.items() if a == b})


def _counts(states: Bags) -> Counter[Any]:
    found = Counter[Any]()
    for row, count in before(states).items():
        found[row % 2] += count
    return Counter(dict.fromkeys(found.items(), 1))


QUERIES: dict[str, tuple[Callable[[Any], Any], Callable[[Bags], Counter[Any]]]] = {
    "previous": (lambda t: t.previous(), before),
    "two commits ago": (lambda t: t.previous().previous(), lambda states: before(states, 2)),
    "new": (
        lambda t: t.difference_all(t.previous()),
        lambda states: states[-1] - before(states),
    ),
    "gone": (
        lambda t: t.previous().difference_all(t),
        lambda states: before(states) - states[-1],
    ),
    "both": (lambda t: t.join(t.previous(), on=lambda a, b: a == b), _joined),
    "counted": (
        lambda t: t.previous().group_by(lambda n: n % 2).aggregate(Count()),
        _counts,
    ),
    "of what is counted": (
        lambda t: t.group_by(lambda n: n % 2).aggregate(Count()).previous(),
        _counts,
    ),
}


class Refused(Exception):
    """Exception raised by a callable."""


def refused(row: int) -> int:
    if row == 99:
        raise Refused
    return row


def play(seed: int) -> None:
    """Views of all queries, made at different commits, over a history with commits that fail."""
    random = Random(seed)
    db = Database(optimize=random.random() < 0.7)
    table, other = db.table(int, name="table"), db.table(int, name="other")
    guard = table.select(refused).materialize()
    states: Bags = [Counter()]
    views: dict[str, tuple[Any, int]] = {}
    subscribed: dict[str, Counter[Any]] = {}
    subscriptions = []
    for name in QUERIES:
        if random.random() < 0.5:
            views[name] = QUERIES[name][0](table).materialize(), 0
    for _ in range(random.randrange(4, 12)):
        _commit(random, db, table, other, states)
        for name, (view, begun) in views.items():
            assert Counter(dict(view.zset().items())) == QUERIES[name][1](states[begun:]), (
                seed,
                name,
            )
            view.verify()
            if name in subscribed:
                assert +subscribed[name] == Counter(dict(view.zset().items())), (seed, name)
        if random.random() < 0.3:
            name = random.choice([*QUERIES])
            if name not in views and not _shares_with(views):
                views[name] = QUERIES[name][0](table).materialize(), len(states) - 1
            if name in views and name not in subscribed:
                rows = subscribed[name] = Counter()

                def hear(delta: Any, rows: Counter[Any] = rows) -> None:
                    for row, weight in delta.zset.items():
                        rows[row] += weight

                subscriptions.append(views[name][0].subscribe(hear, snapshot=True))
    assert Counter(guard) == states[-1]
    views.clear()
    subscriptions.clear()


def _shares_with(views: dict[str, Any]) -> bool:
    """Return True if a view that is made now would reuse the past rows of another one."""
    return bool(views)


def _commit(random: Random, db: Database, table: Any, other: Any, states: Bags) -> None:
    """A commit, which may be of another table, or fail."""
    kind, rows = random.random(), Counter(states[-1])
    if kind < 0.2:
        other.add(random.randrange(5))
    elif kind < 0.35:
        with pytest.raises(Refused), db.transaction():
            table.add(random.randrange(5))
            other.add(1)
            table.add(99)
        return
    else:
        changed = random.random() < 0.2
        with db.transaction():
            for _ in range(random.randrange(1, 4)):
                row = random.randrange(5)
                if random.random() < 0.6 or not rows[row]:
                    table.add(row)
                    rows[row] += 1
                else:
                    table.remove(row)
                    rows[row] -= 1
            if changed:
                other.add(1)
        if +rows == states[-1] and not changed:
            return
    states.append(+rows)


@pytest.mark.long
@examples(150)
@given(seed=SEEDS)
def test_a_view_has_the_rows_of_the_commit_before(seed: int) -> None:
    play(seed)


@examples(40)
@given(seed=SEEDS)
def test_thresholds_make_no_difference(seed: int) -> None:
    with thresholds(drawn(Random(seed))):
        play(seed)


def test_a_late_view_has_what_the_first_one_knows() -> None:
    db = Database()
    table, other = db.table(int, name="table"), db.table(int, name="other")
    table.add(1)
    first = table.previous().materialize()
    table.add(2)
    late = table.previous().select(lambda n: n).materialize()
    assert sorted(first) == sorted(late) == [1]
    late.verify()
    twice = table.previous().previous().materialize()
    other.add(1)
    assert (sorted(first), sorted(late), sorted(twice)) == ([1, 2], [1, 2], [1])
    first.close()
    late.close()
    twice.close()
    table.add(3)
    assert sorted(table.previous().materialize()) == [1, 2, 3]  # no operator knows the past


def test_what_is_asked_of_one_that_nobody_reads_any_more_is_forgotten() -> None:
    db = Database()
    table = db.table(int, name="table")
    view = table.previous().materialize()
    table.add(1)
    assert db._engine.graph.past
    view.close()
    table.add(2)
    table.add(3)
    assert not db._engine.graph.past


def test_work_is_that_of_what_has_changed() -> None:
    touched = []
    for rows in (10, 10_000):
        db = Database()
        table, other = db.table(int, name="table"), db.table(int, name="other")
        table.add_all(range(rows))
        view = table.previous().where(lambda n: n >= 0).materialize()
        counts = []
        for changed in (table, other, other):
            was = view.stats().touched
            changed.add(1)
            counts.append(view.stats().touched - was)
        touched.append(counts)
    assert touched[0] == touched[1]
    assert touched[0][-1] == 0  # nothing is pending


def test_what_is_refused() -> None:
    db = Database(offload=Elsewhere())
    table = db.table(tuple, name="table")
    for step in (
        lambda r: table.union(r.previous()),
        lambda r: table.union(r.join(table).select(lambda a, b: a).previous()),
    ):
        with pytest.raises(PlanError, match="the rows of a step are not those of a commit"):
            fixpoint(step)
    with pytest.raises(PlanError, match="the rows of a step are not those of a commit"):
        table.group_by(lambda p: p[0]).each(lambda rows: rows.previous())
    closed = fixpoint(lambda r: table.previous().union(r.select(lambda p: p[::-1]))).materialize()
    table.add((1, 2))
    table.add((3, 4))
    assert sorted(closed) == [(1, 2), (2, 1)]
    closed.verify()
    view = table.distinct().previous().distinct().materialize()
    for each in (view, table.distinct().materialize()):
        with pytest.raises(OffloadError, match=r"previous\(\) has rows of each commit"):
            each.offload()
    away = table.select(lambda p: p[0]).distinct().materialize()
    away.offload()
    with pytest.raises(OffloadError, match=r"previous\(\) reads what is not in the process"):
        away.relation.previous().materialize()
    assert "\n  distinct\n    previous\n      distinct\n" in str(view.explain())


def test_what_a_bail_out_makes_again_knows_what_was_before() -> None:
    db = Database()
    table, other = db.table(tuple, name="table"), db.table(tuple, name="other")
    sums = (
        table.join(other, on=lambda a, b: a[0] == b[0])
        .group_by(lambda a, b: a[0])
        .aggregate(Sum(lambda a, b: a[1] * b[1]))
    )
    view: Any = sums.previous().materialize()
    table.add((1, 2))
    other.add((1, 3))
    table.add((1, 1))
    assert view[1] == 6
    view.verify()
    table.add((1, float("nan")))  # sums of a side no longer replace the sums of pairs
    assert view[1] == 9
    view.verify()
    other.add((2, 1))
    assert view[1] != view[1]
    view.verify()
