"""Verifying a recursion calls a bounded number of functions per row, whatever its step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reactive import Count, Database, Max, Sum, Table, fixpoint, iterate
from tests.budget import drawing, sampled
from tests.counted_calls import calls_of

Edge = tuple[int, int]
Step = Callable[[Any, Table[Edge], Table[int]], Any]
"""Function from the reached nodes to the next ones; the table of numbers has all nodes."""
SHAPES: dict[str, Callable[[int], Edge]] = {
    "chain": lambda n: (n - 1, n),
    "tree": lambda n: ((n - 1) // 2, n),
    "two chains": lambda n: (max(n - 2, 0), n),
}
STEPS: dict[str, Step] = {
    "semi_join": lambda r, e, k: e.semi_join(r, on=lambda x, n: x[0] == n).select(lambda x: x[1]),
    "semi_join by keys": lambda r, e, k: e.semi_join(
        r, left_key=lambda x: x[0], right_key=lambda n: n
    ).select(lambda x: x[1]),
    "semi_join and more": lambda r, e, k: e.semi_join(
        r, on=lambda x, n: x[0] == n and x[1] + n > 0
    ).select(lambda x: x[1]),
    "semi_join of few keys": lambda r, e, k: e.semi_join(
        r, on=lambda x, n: x[0] % 2 == n % 2
    ).select(lambda x: x[1]),
    "semi_join from the left": lambda r, e, k: r.semi_join(k, on=lambda n, x: n == x).select(
        lambda n: n + 1
    ),
    "anti_join": lambda r, e, k: r.anti_join(k, on=lambda n, x: n == -x - 1).select(
        lambda n: n + 1
    ),
    "left_join": lambda r, e, k: r.left_join(e, on=lambda n, x: n == x[0]).select(
        lambda n, x: n if x is None else x[1]
    ),
    "left_join by keys": lambda r, e, k: r.left_join(
        e, left_key=lambda n: n, right_key=lambda x: x[0]
    ).select(lambda n, x: n if x is None else x[1]),
    "aggregate of matches": lambda r, e, k: (
        r.join(e, on=lambda n, x: n == x[0])
        .group_by(lambda n, x: n)
        .aggregate(Count(), Max(lambda n, x: x[1]))
        .select(lambda n, c, m: n + min(c, 1, m))
    ),
    "aggregate of matches or none": lambda r, e, k: (
        r.left_join(e, on=lambda n, x: n == x[0])
        .group_by(lambda n, x: n)
        .aggregate(Sum(lambda n, x: 0 if x is None else 1))
        .select(lambda n, c: n + max(1, min(c, 1)))
    ),
    "distinct": lambda r, e, k: (
        r.join(e, on=lambda n, x: n == x[0]).select(lambda n, x: x[1]).distinct()
    ),
    "intersection": lambda r, e, k: (
        r.join(e, on=lambda n, x: n == x[0]).select(lambda n, x: x[1]).intersection(k)
    ),
    "difference": lambda r, e, k: (
        r.join(e, on=lambda n, x: n == x[0])
        .select(lambda n, x: x[1])
        .difference(k.where(lambda n: n < 0))
    ),
    "any": lambda r, e, k: e.where(lambda x: any(n == x[0] for n in r)).select(lambda x: x[1]),
    "in": lambda r, e, k: e.where(lambda x: x[0] in r).select(lambda x: x[1]),
    "semi_join that asks": lambda r, e, k: e.semi_join(
        k, on=lambda x, n: n == x[1] and any(q == x[0] for q in r)
    ).select(lambda x: x[1]),
    "semi_join that asks for a partner": lambda r, e, k: e.semi_join(
        k, on=lambda x, n: n == x[0] and n in r
    ).select(lambda x: x[1]),
    "join that asks": lambda r, e, k: e.join(
        k, on=lambda x, n: n == x[1] and any(q == x[0] for q in r)
    ).select(lambda x, n: n),
    "largest of matches": lambda r, e, k: r.select(
        lambda n: n + max([1 for x in e if x[0] == n], default=1)
    ),
    "fixpoint": lambda r, e, k: fixpoint(
        lambda q: r.union(e.semi_join(q, on=lambda x, n: x[0] == n).select(lambda x: x[1]))
    ),
    "iterate": lambda r, e, k: iterate(
        lambda q: e.semi_join(q, on=lambda x, n: x[0] == n).select(lambda x: x[1]), r, times=2
    ),
}


def calls_to_verify(shape: str, steps: tuple[str, ...], size: int) -> float:
    """Return the calls per row of a fixpoint in which each step reads the next relation."""
    db = Database()
    edges: Table[Edge] = db.table(tuple[int, int], name="edges")
    numbers: Table[int] = db.table(int, name="numbers")
    start = edges.where(lambda x: x[0] == 0).select(lambda x: x[0])
    chosen = [STEPS[name] for name in steps]

    def bodies(*relations: Any) -> Any:
        others = (*relations[1:], relations[0])
        made = [
            start.union(step(r, edges, numbers).where(lambda n: n <= size))
            for step, r in zip(chosen, others, strict=True)
        ]
        return made[0] if len(made) == 1 else tuple(made)

    found = fixpoint(DEFINED[len(steps)](bodies))
    view = (found if len(steps) == 1 else found[0]).materialize()
    with db.transaction():
        edges.add_all(map(SHAPES[shape], range(1, size + 1)))
        numbers.add_all(range(size + 1))
    view.verify()
    assert len(view) > size // 4
    return calls_of(view.verify) / size


DEFINED: dict[int, Callable[[Any], Any]] = {
    1: lambda bodies: lambda a: bodies(a),
    2: lambda bodies: lambda a, b: bodies(a, b),
    3: lambda bodies: lambda a, b, c: bodies(a, b, c),
}
"""Functions of as many parameters as there are relations."""


@sampled
@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", STEPS)
def test_a_row_of_a_recursion_is_verified_in_a_bounded_number_of_calls(
    step: str, shape: str
) -> None:
    few, many = (calls_to_verify(shape, (step,), size) for size in (60, 240))
    assert many <= 1.5 * few
    assert many <= 500


def test_mutual_recursions_are_verified_in_a_bounded_number_of_calls() -> None:
    draws = drawing()
    for _ in range(4):
        steps = tuple(draws.choices(list(STEPS), k=draws.choice((2, 3))))
        shape = draws.choice(list(SHAPES))
        few, many = (calls_to_verify(shape, steps, size) for size in (60, 240))
        assert many <= 1.5 * few, (steps, shape)
        assert many <= 1000, (steps, shape)


def outer_join(kind: str) -> Callable[[Any, Any, Any], Any]:
    return lambda r, e, k: getattr(e, kind)(
        k, on=lambda x, n: n == x[1] and any(q == x[0] for q in r)
    ).select(lambda x, n: (0 if x is None else x[0]) + (1 if n is None else n))


ASKING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "semi_join": lambda r, e, k: e.semi_join(
        k, on=lambda x, n: n <= x[1] and any(q == x[0] for q in r)
    ).select(lambda x: x[1]),
    "semi_join of pairs": lambda r, e, k: (
        e.join(k, on=lambda x, n: x[1] == n)
        .semi_join(k, on=lambda x, n, m: m < 3 and n + m in r)
        .select(lambda x, n: x[0])
    ),
    "anti_join": lambda r, e, k: e.anti_join(
        k, on=lambda x, n: n == x[1] and any(q <= x[0] for q in r)
    ).select(lambda x: x[0]),
    **{kind: outer_join(kind) for kind in ("left_join", "right_join", "full_join")},
}


@pytest.mark.parametrize("form", ASKING)
def test_joins_that_ask_the_recursion_are_followed(form: str) -> None:
    """Evaluation round by round has the rows of the view, after each change."""
    draws = drawing()
    db = Database()
    edges: Table[Edge] = db.table(tuple[int, int], name="edges")
    numbers: Table[int] = db.table(int, name="numbers")
    start = edges.where(lambda x: x[1] < 3).select(lambda x: x[0] % 5)
    view = iterate(
        lambda r: ASKING[form](r, edges, numbers).where(lambda n: n < 9).union(start),
        start,
        times=4,
    ).materialize()
    for _ in range(12):
        with db.transaction():
            for _ in range(draws.choice((1, 3, 8))):
                edges.add((draws.randrange(7), draws.randrange(7)))
                numbers.add(draws.randrange(7))
            for table in (edges, numbers):
                rows: list[Any] = sorted(table)
                table.remove_all(draws.sample(rows, len(rows) // 3))
        view.verify()


@pytest.mark.parametrize("form", ["semi_join", "semi_join of pairs"])
def test_semi_joins_in_a_fixpoint_that_ask_it_are_followed(form: str) -> None:
    draws = drawing()
    db = Database()
    edges: Table[Edge] = db.table(tuple[int, int], name="edges")
    numbers: Table[int] = db.table(int, name="numbers")
    start = edges.where(lambda x: x[1] < 3).select(lambda x: x[0] % 5)
    view = fixpoint(lambda r: ASKING[form](r, edges, numbers).union(start)).materialize()
    for _ in range(12):
        edges.add((draws.randrange(7), draws.randrange(7)))
        numbers.add(draws.randrange(7))
        if draws.random() < 0.3:
            edges.remove(draws.choice(sorted(edges)))
        view.verify()
