"""Writers and readers of a recursion in many threads see commits, and nothing between them."""

from __future__ import annotations

import threading
from random import Random
from typing import Any

from reactive import Count, Database, Table
from tests.engine.operators.fixpoint.follow import Follower
from tests.engine.operators.fixpoint.graphs import Edge, closure, cycle
from tests.engine.operators.fixpoint.test_shapes import left_linear, odd_and_even
from tests.engine.transactions.test_threads import together

Rel = Any


def test_readers_see_whole_cycles_or_none() -> None:
    """Close and open rings; every reader must find all pairs of a ring, or none."""
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    reach: Rel = left_linear(edges)
    pairs, counts = reach.materialize(), reach.aggregate(Count()).materialize()
    size = 5
    done = threading.Event()

    def write(number: int) -> None:
        ring = cycle(*range(100 * number, 100 * number + size))
        for _ in range(15):
            edges.add_all(ring)
            edges.remove_all(ring)

    def read() -> None:
        while not done.is_set():
            assert len(pairs) % size**2 == 0
            assert counts.value % size**2 == 0

    def write_all() -> None:
        try:
            together(*(lambda n=n: write(n) for n in range(4)))
        finally:
            done.set()

    together(write_all, read, read)
    assert (len(pairs), counts.value, pairs.stats().rows) == (0, 0, 0)


def test_views_that_come_and_go_while_others_write_are_right() -> None:
    db = Database()
    edges: Table[Edge] = db.table(Edge, name="edges")
    followers = [Follower(left_linear(edges).materialize())]

    def write(seed: int) -> None:
        random = Random(seed)
        own = [Edge(random.randrange(6), random.randrange(6)) for _ in range(40)]
        for edge in own:
            edges.add(edge)
        for edge in own[::2]:
            with db.transaction():
                edges.remove(edge)
                edges.add(Edge(edge.dst, edge.src))

    def look() -> None:
        for _ in range(10):
            view = odd_and_even(edges).materialize()
            view.verify()
            view.close()

    together(lambda: write(1), lambda: write(2), look)
    followers.append(Follower(odd_and_even(edges).materialize()))
    for follower in followers:
        follower.check()
        assert set(follower.view) == closure(edges)
