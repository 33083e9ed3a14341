"""`db.suppose()`: views show what is supposed, and nothing has happened afterwards."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

import pytest
from hypothesis import given

from reactive import Avg, Count, Database, Max, fixpoint
from reactive.errors import TransactionError
from tests.budget import examples, seeds
from tests.random_queries.drawn import SEEDS, commit, draw


@given(seed=SEEDS)
@examples(800)
def test_views_show_a_supposed_commit_as_if_it_were_made(seed: int) -> None:
    drawn = draw(seed, steps=3)
    db, other = Database(), Database()
    tables, others = drawn.open(db), drawn.open(other)
    view = drawn.relations(tables)[0].materialize()
    same = drawn.relations(others)[0].materialize()
    told: list[Any] = []
    subscription = view.subscribe(told.append)
    told.clear()
    for made in drawn.script():
        before = _rows(view), [sorted(map(repr, table)) for table in tables], db.version
        commit(other, others, made)
        with db.suppose():
            for call in made:
                commit(db, tables, [call])
            assert _rows(view) == _rows(same), drawn
            view.verify()
        assert (_rows(view), [sorted(map(repr, t)) for t in tables], db.version) == before
        assert not told
        view.verify()
        commit(db, tables, made)
        told.clear()
    subscription.close()


def _rows(view: Any) -> dict[Any, int]:
    return dict(view.zset().items())


@pytest.mark.parametrize("seed", seeds(80))
def test_rows_that_are_equally_good_keep_their_places(seed: int) -> None:
    random = Random(seed)
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    weights = db.table(tuple[int, float], name="weights")
    reach = fixpoint(
        lambda r: edges.union(
            r.join(edges, on=lambda p, e: p[1] == e[0]).select(lambda p, e: (p[0], e[1]))
        )
    ).materialize()
    joined = edges.join(weights, on=lambda a, b: a[1] == b[0])
    groups = joined.group_by(lambda a, b: a[0]).aggregate(
        Count(), Max(lambda a, b: b[1]), Avg(lambda a, b: b[1])
    )
    group_view = groups.materialize()
    first = weights.order_by(lambda w: w[1]).limit(3).materialize()
    ordered = weights.order_by(lambda w: w[0]).materialize()

    def state() -> Any:
        return sorted(reach), sorted(group_view), list(first), list(ordered), db.version

    for _ in range(40):
        edge = random.randrange(8), random.randrange(8)
        weight = random.randrange(8), random.choice([0.5, 0.25])
        edges.add(edge)
        weights.add(weight)
        before = state()
        with db.suppose():
            edges.remove(random.choice(list(edges)))
            inside = state()
            weights.remove(random.choice(list(weights)))
            weights.add(weight)
            outer = state()
            with db.suppose():
                weights.add((1, 1.0))
                assert state() != outer
            assert state() == outer
            assert inside[-1] == before[-1]
        assert state() == before


def test_a_supposition_that_raises_is_undone_and_one_may_be_kept() -> None:
    db = Database()
    words = db.table(str, name="words")
    lengths = words.select(len).materialize()
    told: list[Any] = []
    with lengths.subscribe(told.append):
        with pytest.raises(ZeroDivisionError), db.suppose():
            words.add("to")
            1 / 0  # noqa: B018
        assert not len(words) and db.version == 0
        with db.suppose() as supposed:
            words.add("to")
            assert lengths.diff().added == (2,)
            supposed.keep()
        assert (list(words), db.version, len(told)) == (["to"], 1, 1)


def test_a_callable_that_raises_leaves_the_rest_as_it_was() -> None:
    db = Database()
    numbers = db.table(int, name="numbers")
    quotients = numbers.select(lambda n: 10 // n).materialize()
    numbers.add(5)
    with db.suppose():
        numbers.add(0)
        with pytest.raises(ZeroDivisionError):
            list(quotients)
        numbers.remove(0)
        numbers.add(1)
        assert sorted(quotients) == [2, 10]
    assert (list(numbers), list(quotients)) == ([5], [2])


def test_others_wait_for_the_end() -> None:
    db = Database()
    words = db.table(str, name="words")
    lengths = words.select(len).materialize()
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(len(lengths)))
    with db.suppose():
        words.add("to")
        assert len(lengths) == 1
        thread.start()
        thread.join(0.05)
        assert not found
    thread.join()
    assert found == [0]


def test_what_cannot_be_supposed_is_refused() -> None:
    db = Database()
    words = db.table(str, name="words")
    lengths = words.select(len).materialize()
    with db.transaction(), pytest.raises(TransactionError, match="a transaction is open"):
        db.suppose().__enter__()
    with db.suppose(), pytest.raises(TransactionError, match="cannot be made"):
        words.select(lambda w: w).materialize()
    with pytest.raises(TransactionError, match="nothing is supposed"):
        lengths.diff()
    words.add("to")
    assert list(lengths) == [2]


def test_why_is_answered_within() -> None:
    db = Database()
    edges = db.table(tuple[int, int], name="edges")
    view = edges.select(lambda e: e[1]).distinct().materialize()
    with db.suppose():
        edges.add((1, 2))
        assert view.why(2).facts() == [("edges", (1, 2))]
    assert 2 not in view
