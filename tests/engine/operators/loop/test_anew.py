"""Loops that are recomputed: the result that a tolerance allows."""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import pytest

from optimizer.plans.strata import over_given
from reactive import Database, FixpointError, iterate
from reactive.engine.compiler.hops import loop_of
from reactive.engine.compiler.inner_graph import InnerGraph

LEAST = 0.5


class Heat(NamedTuple):
    place: int
    degrees: float


def loop(**options: Any) -> Any:
    """The operator of a loop of three rounds: each place is as warm as half of where it was."""
    table = Database().table(Heat, name="t")
    rounds = iterate(
        lambda r: r.select(lambda h: Heat(h.place, h.degrees / 2)), table, times=3, **options
    )
    inputs, given = over_given(rounds.plan)  # type: ignore[arg-type]
    return loop_of(given, tuple(range(len(inputs))), InnerGraph, generate=True)()


def test_a_row_is_shown_anew_when_what_the_rounds_come_to_has_moved_by_the_tolerance() -> None:
    operator = loop(tolerance=LEAST, of=lambda h: h.degrees, by=lambda h: h.place)
    random, rows, shown = Random(3), dict[int, float](), dict[int, float]()
    for _ in range(60):
        place, before = random.randrange(4), dict(rows)
        if random.random() < 0.2:
            rows.pop(place, None)
        else:
            rows[place] = rows.get(place, 8.0) + random.choice((0.5, 1.0, 3.0, 9.0, -2.5))
        delta = [(Heat(*h), -1) for h in before.items() if h not in rows.items()]
        delta += [(Heat(*h), 1) for h in rows.items() if h not in before.items()]
        operator.step(delta)
        shown = {
            p: shown[p] if p in shown and abs(shown[p] - d / 8) < LEAST else d / 8
            for p, d in rows.items()
        }
        if random.random() < 0.3:
            wanted = dict(operator.rows(0))
            operator.commit()
            operator.step([(Heat(9, 80.0), 1)])
            operator.undo()
            assert dict(operator.rows(0)) == wanted
        operator.commit()
        assert dict(operator.rows(0)) == {Heat(p, d): 1 for p, d in shown.items()}


def test_several_rows_of_a_key_that_has_a_tolerance_are_an_error() -> None:
    operator = loop(tolerance=LEAST, of=lambda h: h.degrees, by=lambda h: h.place)
    with pytest.raises(FixpointError, match="one row of each key"):
        operator.step([(Heat(1, 1.0), 1), (Heat(1, 2.0), 1)])
