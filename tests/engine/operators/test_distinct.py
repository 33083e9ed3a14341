"""Distinct over a chain of loops: batches are counted, single rows go one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from reactive import Database, TableError
from tests.replica import Replica


@dataclass(frozen=True, slots=True)
class Row:
    user: Any
    page: Any


def kept(row: Row) -> Any:
    """Map a row for the queries below."""
    if row.page == "bad":
        raise ValueError("a bad page")
    return (row.user, row.page)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_it_shows_each_row_once_whatever_comes_in_one_commit(
    seed: int, optimize: bool, stored: bool
) -> None:
    random = Random(seed)
    db = Database(optimize=optimize)
    rows = db.table(Row, stored=stored)
    chains = [
        rows.where(lambda r: r.user != 0).select(lambda r: (r.user, r.page)),
        rows.select(kept),
        rows.unnest(lambda r: (r.user, r.user, r.page)).select(lambda r, part: part),
    ]
    views: list[Any] = [chain.distinct().materialize() for chain in chains]
    replicas = [Replica(view) for view in views]
    held: list[Row] = []
    for number in range(40):
        added = [Row(random.randrange(4), random.randrange(3)) for _ in range(random.randrange(30))]
        removed = random.sample(held, random.randrange(min(len(held), 20) + 1))
        fails = number % 4 == 1
        try:
            with db.transaction():
                rows.add_all(added + [Row(1, "bad")] * fails)
                rows.remove_all(removed)
        except ValueError:
            assert fails
        else:
            held = list((Counter(held + added) - Counter(removed)).elements())
        if held and number % 3 == 0:
            rows.remove(held.pop())
        wanted = [
            {(r.user, r.page) for r in held if r.user != 0},
            {(r.user, r.page) for r in held},
            {part for r in held for part in (r.user, r.page)},
        ]
        assert [dict(view.zset().items()) for view in views] == [
            dict.fromkeys(w, 1) for w in wanted
        ]
        for replica in replicas:
            replica.check()
        if number % 10 == 9:
            rows.remove_all(held)
            held = []


def test_a_first_batch_that_fails_leaves_nothing() -> None:
    rows = Database().table(Row)
    pairs: Any = rows.select(lambda r: (r.user, r.page)).distinct().materialize()
    inverse = rows.select(lambda r: 1 // r.page).materialize()
    with pytest.raises(ZeroDivisionError):
        rows.add_all([Row(n % 7, n) for n in range(100)])
    assert (len(pairs), len(inverse), list(pairs)) == (0, 0, [])
    rows.add_all([Row(n % 7, 1) for n in range(100)])
    assert len(pairs) == 7
    pairs.verify()
    with pytest.raises(TableError):
        rows.add_all([Row(1, []), Row(1, 1)])
    assert len(pairs) == 7
