"""The examples of operators are checked by random histories, against plain functions."""

from __future__ import annotations

import random
from math import dist

from examples.operators.approximate import Distinct
from examples.operators.nearby import Near, Point
from reactive import Database
from reactive.testing import check_operator


def test_points_within_a_distance_are_those_of_all_pairs() -> None:
    draw = random.Random(7)
    left, right = (
        [Point(str(n), draw.choice((-1.0, 0.0, 0.5, 2.25)), draw.uniform(-2, 2)) for n in range(9)]
        for _ in range(2)
    )
    check_operator(
        Near,
        left,
        right,
        expected=lambda a, b: [(p, q) for p in a for q in b if dist(p[1:], q[1:]) <= 1],
        histories=40,
        distance=1.0,
    )


def test_a_point_meets_the_points_of_nine_cells_only() -> None:
    db = Database()
    taxis, riders = db.table(Point, name="taxis"), db.table(Point, name="riders")
    near = taxis.through(Near, riders, distance=1.0).materialize()
    riders.add_all([Point(str(n), n + 0.5, 0.5) for n in range(2_000)])
    before = near.stats().touched
    taxis.add(Point("a", 1_000.5, 0.5))
    assert len(near) == 3
    assert near.stats().touched - before < 30


def test_an_estimate_depends_on_the_present_rows_alone() -> None:
    check_operator(Distinct, range(20), histories=20, bits=4)


def test_an_estimate_is_near_the_number_of_different_rows() -> None:
    db = Database()
    rows = db.table(int, name="rows")
    estimate = rows.through(Distinct, bits=10).materialize()
    rows.add_all([*range(3_000), *range(500)])
    assert 2_700 < estimate.value < 3_300
    rows.remove_all([*range(200, 3_000), *range(200, 500)])
    assert 170 < estimate.value < 230
