"""Typical mistakes with windows: each is refused when the query is made, with a remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from reactive import Collect, Count, Database, PlanError, RowWindow, desc, live


class Score(NamedTuple):
    name: str
    team: str
    points: int


Case = tuple[Callable[[Any], object], str, str]
"""A statement over a table of scores, a part of the message, and a part of the remedy."""


def ranked(scores: Any) -> Any:
    return scores.over(by="team", order=desc("points"))


def inner_names(scores: Any) -> object:
    """Give `over` a function of the rows of another `for`."""
    db, teams = Database(), None
    scores, teams = db.table(Score, name="scores"), db.table(tuple[str, int], name="teams")
    return db.query(
        lambda: [
            (s.name, w.rank())
            for t in teams
            for s, w in scores.over(order=lambda s: s.points + t[1])
        ]
    )


CASES: dict[str, Case] = {
    "a key that is no field": (
        lambda s: s.over(order="pionts"),
        "no binding has a field",
        "points",
    ),
    "a partition that is no field": (lambda s: s.over(by="tem"), "the by of over", "team"),
    "no keys": (lambda s: s.over(order=[]), "order=[], which names no key", "desc(f)"),
    "an order that is forgotten": (
        lambda s: s.over(by="team").select(lambda s, w: w.rank()),
        "needs an order, and over(...) has none",
        "over(by=..., order=...)",
    ),
    "lag without an order": (
        lambda s: s.over(by="team").select(lambda s, w: w.lag(s.points)),
        "w.lag(...)",
        "order=...",
    ),
    "a frame without an order": (
        lambda s: s.over(by="team").select(lambda s, w: w.sum(s.points, rows=(-1, 0))),
        "has rows=(-1, 0), but over(...) has no order",
        "order=...",
    ),
    "a frame the wrong way round": (
        lambda s: ranked(s).select(lambda s, w: w.sum(s.points, rows=(2, -2))),
        "ends before it starts",
        "rows=(-2, 2)",
    ),
    "a frame of one number": (
        lambda s: ranked(s).select(lambda s, w: w.sum(s.points, rows=-2)),
        "no pair of ends",
        "rows=(-2, 0)",
    ),
    "a frame of fractions of rows": (
        lambda s: ranked(s).select(lambda s, w: w.count(rows=(-2.5, 0))),
        "rows are counted by whole numbers",
        "range=",
    ),
    "two frames": (
        lambda s: ranked(s).select(lambda s, w: w.count(rows=(-2, 0), range=(-2, 0))),
        "has rows= and range=",
        "one of them",
    ),
    "distances that are none": (
        lambda s: ranked(s).select(lambda s, w: w.count(range=("a", 0))),
        "are no distances",
        "timedelta",
    ),
    "distances of two keys": (
        lambda s: s.over(order=["team", "points"]).select(lambda s, w: w.count(range=(-1, 0))),
        "has 2 sort keys",
        "rows= counts rows",
    ),
    "a frame that depends on the row": (
        lambda s: ranked(s).select(lambda s, w: w.count(rows=(-s.points, 0))),
        "rows that depends on the row",
        "one value for all rows",
    ),
    "no parts": (
        lambda s: ranked(s).select(lambda s, w: w.ntile(0)),
        "a whole number from 1 on as count, not 0",
        "count=2",
    ),
    "row 0": (lambda s: ranked(s).select(lambda s, w: w.nth(s.points, 0)), "has no row 0", "-1 is"),
    "a fraction of 2": (
        lambda s: ranked(s).select(lambda s, w: w.quantile(s.points, 2)),
        "a fraction from 0 to 1, not 2",
        "median",
    ),
    "a function that there is not": (
        lambda s: ranked(s).select(lambda s, w: w.rnk()),
        "a window has no function 'rnk'",
        "rank, dense_rank",
    ),
    "a function that is not called": (
        lambda s: ranked(s).select(lambda s, w: w.rank),
        "reads w.rank",
        "call it: w.rank()",
    ),
    "an argument that is missing": (
        lambda s: ranked(s).select(lambda s, w: w.lag()),
        "missing a required argument: 'value'",
        "w.lag(value, by=1, *, default=None, skip_none=False)",
    ),
    "a window that is compared": (
        lambda s: ranked(s).where(lambda s, w: w == 1),
        "uses a window as a value",
        "w.rank()",
    ),
    "a window that is an argument": (
        lambda s: ranked(s).select(lambda s, w: w.sum(w)),
        "uses a window as a value",
        "w.rank()",
    ),
    "an answer of the same window": (
        lambda s: ranked(s).select(lambda s, w: w.sum(w.rank())),
        "another answer of the window",
        "call over(...) again",
    ),
    "a callable that cannot be read": (
        lambda s: ranked(s).select(lambda s, w: [w.rank() for _ in range(3)]),
        "cannot be read",
        "one expression",
    ),
    "a view of windows": (lambda s: ranked(s).materialize(), "which is no value", "select"),
    "rows with windows inside": (
        lambda s: ranked(s).select(lambda s, w: (s, w)).materialize(),
        "which is no value",
        "select",
    ),
    "a subscription to windows": (
        lambda s: ranked(s).subscribe(print),
        "which is no value",
        "select",
    ),
    "a comprehension of windows": (
        lambda s: live(w for _, w in ranked(s)),
        "which is no value",
        "select",
    ),
    "an order by a window": (
        lambda s: ranked(s).order_by(lambda s, w: w.rank()),
        "which is no value",
        "select",
    ),
    "distinct windows": (lambda s: ranked(s).distinct(), "which is no value", "select"),
    "windows of two sides": (lambda s: ranked(s) | ranked(s), "which is no value", "select"),
    "a join with windows": (
        lambda s: s.join(ranked(s), on=lambda a, b: a == b[0]),
        "which is no value",
        "select",
    ),
    "groups that collect windows": (
        lambda s: ranked(s).group_by(lambda s, w: w.rank()).aggregate(Collect(lambda s, w: w)),
        "uses a window as a value",
        "w.rank()",
    ),
    "an order that would be lost": (
        lambda s: s.order_by("points").over(order="name"),
        "over would lose the order of the rows",
        "order_by(key) after select",
    ),
    "a function of the rows around": (
        inner_names,
        "reads variables of a comprehension",
        "own rows",
    ),
    "a window of nobody": (lambda s: RowWindow(), "not called", "relation.over(order=...)"),
    "a function of no query": (
        lambda s: RowWindow.rank(object()),  # type: ignore[arg-type]
        "rank is read from a callable",
        "relation.over(order=...)",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_mistake_is_refused_with_a_remedy(name: str) -> None:
    act, problem, remedy = CASES[name]
    scores = Database().table(Score, name="scores")
    with pytest.raises(PlanError) as refused:
        act(scores)
    first, *rest = str(refused.value).split("\n")
    assert problem in first, first
    assert re.search(re.escape(remedy), "\n".join(rest)), rest


def test_a_key_without_hash_is_told_with_its_row() -> None:
    db = Database()
    scores = db.table(Score, name="scores")
    counted = (
        scores.over(by=lambda s: [s.team])  # type: ignore[arg-type, return-value]
        .select(lambda s, w: w.count())
        .materialize()
    )
    with pytest.raises(TypeError, match="unhashable") as refused:
        scores.add(Score("Ann", "red", 5))
    assert any("Score(name='Ann'" in note for note in refused.value.__notes__)
    assert not list(scores) and not list(counted)


def test_counts_of_rows_without_a_call_need_no_window() -> None:
    db = Database()
    scores = db.table(Score, name="scores")
    scores.add(Score("Ann", "red", 5))
    names = scores.over(order="points").select(lambda s, w: s.name)
    assert list(names.materialize()) == ["Ann"] and "reduce" not in str(names.explain())
    assert scores.over(order="points").aggregate(Count()).materialize().value == 1
