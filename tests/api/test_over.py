"""`over`: windows as methods and in comprehensions, beside plain Python over sorted lists."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Count, Database, Relation, RowWindow, asc, desc, live
from reactive.engine.operators.statistics import QuantileAccumulator
from tests.budget import seeds


class Score(NamedTuple):
    id: int
    team: int
    points: int
    price: float | None


Rows = list[Score]
NAN = float("nan")


# The oracle.


def parts_in_order(rows: Rows, by: Any, key: Any) -> list[Rows]:
    """Return the partitions, each sorted by `key`, and rows with equal keys by themselves."""
    found: dict[Any, Rows] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return [sorted(sorted(each, key=by_fields), key=key) for each in found.values()]


def by_fields(row: Score) -> Any:
    """Return the order of rows with equal keys: None is before numbers, NaN behind."""
    return *row[:3], str(type(row.price)), row.price != row.price, number(row.price)


def number(value: float | None) -> float:
    return 0.0 if value is None or value != value else value


def peers(part: Rows, place: int, key: Any) -> tuple[int, int]:
    keys = [key(row) for row in part]
    return bisect_left(keys, keys[place]), bisect_right(keys, keys[place])


def in_rows(start: int | None, end: int | None) -> Any:
    def frame(part: Rows, place: int, key: Any) -> Rows:
        first = 0 if start is None else max(0, place + start)
        last = len(part) if end is None else max(0, place + end + 1)
        return part[first:last]

    return frame


def in_range(start: int | None, end: int | None) -> Any:
    def frame(part: Rows, place: int, key: Any) -> Rows:
        own = key(part[place])
        return [
            row
            for row in part
            if (start is None or key(row) >= (own + start if start else own))
            and (end is None or key(row) <= (own + end if end else own))
        ]

    return frame


TO_PEERS = in_range(None, 0)


def folded(fold: Any, value: Any, frame: Any = TO_PEERS) -> Any:
    def answer(part: Rows, place: int, key: Any) -> Any:
        values = [v for row in frame(part, place, key) if (v := value(row)) is not None]
        return fold(values)

    return answer


def total(values: list[Any]) -> Any:
    if any(v != v for v in values):
        return NAN
    return float(sum(map(Fraction, values))) if values else None


def mean(values: list[Any]) -> Any:
    if any(v != v for v in values):
        return NAN
    return float(sum(map(Fraction, values)) / len(values)) if values else None


def least(values: list[Any]) -> Any:
    return min(values, key=lambda v: (v != v, v), default=None)


def greatest(values: list[Any]) -> Any:
    return max(values, key=lambda v: (v != v, v), default=None)


def middle(values: list[Any]) -> Any:
    kept = QuantileAccumulator(True)
    state = kept.zero()
    for value in values:
        kept.add(state, value, 1)
    return kept.result(state)


def shifted(by: int, value: Any, default: Any = lambda row: None, *, skips: bool = False) -> Any:
    def answer(part: Rows, place: int, key: Any) -> Any:
        step, left, other = (1 if by > 0 else -1), abs(by), place
        while left:
            other += step
            if not 0 <= other < len(part):
                return default(part[place])
            left -= not skips or value(part[other]) is not None
        return value(part[other])

    return answer


def nth(n: int, value: Any, frame: Any = TO_PEERS, *, skips: bool = False) -> Any:
    def answer(part: Rows, place: int, key: Any) -> Any:
        values = [value(row) for row in frame(part, place, key)]
        values = [v for v in values if v is not None] if skips else values
        index = n - 1 if n > 0 else n
        return values[index] if -len(values) <= index < len(values) else None

    return answer


def tile(count: int) -> Any:
    def answer(part: Rows, place: int, key: Any) -> int:
        sizes = [len(part) // count + (n < len(part) % count) for n in range(count)]
        return next(n for n in range(1, count + 1) if place < sum(sizes[:n]))

    return answer


def dense_rank(part: Rows, place: int, key: Any) -> int:
    return len({key(row) for row in part[: place + 1]})


def percent(part: Rows, place: int, key: Any) -> float:
    return peers(part, place, key)[0] / (len(part) - 1) if len(part) > 1 else 0.0


def points(row: Score) -> int:
    return row.points


def price(row: Score) -> float | None:
    return row.price


Call = Callable[[Any, Any], Any]
OF_PLACES: dict[str, tuple[Call, Any]] = {
    "rank": (lambda s, w: (s, w.rank()), lambda p, i, k: peers(p, i, k)[0] + 1),
    "dense_rank": (lambda s, w: (s, w.dense_rank()), dense_rank),
    "row_number": (lambda s, w: (s, w.row_number()), lambda p, i, k: i + 1),
    "percent_rank": (lambda s, w: (s, w.percent_rank()), percent),
    "cume_dist": (lambda s, w: (s, w.cume_dist()), lambda p, i, k: peers(p, i, k)[1] / len(p)),
    "ntile": (lambda s, w: (s, w.ntile(3)), tile(3)),
    "lag": (lambda s, w: (s, w.lag(s.points)), shifted(-1, points)),
    "lag 2": (lambda s, w: (s, w.lag(s.points * 2, 2)), shifted(-2, lambda r: r.points * 2)),
    "lag default": (
        lambda s, w: (s, w.lag(s.price, by=1, default=s.id)),
        shifted(-1, price, lambda r: r.id),
    ),
    "lead": (lambda s, w: (s, w.lead(s.id)), shifted(1, lambda r: r.id)),
    "lead known": (
        lambda s, w: (s, w.lead(s.price, skip_none=True)),
        shifted(1, price, skips=True),
    ),
    "first": (lambda s, w: (s, w.first(s.id)), nth(1, lambda r: r.id)),
    "last": (lambda s, w: (s, w.last(s.id)), nth(-1, lambda r: r.id)),
    "last of all": (
        lambda s, w: (s, w.last(s.points, rows=(None, None))),
        nth(-1, points, in_rows(None, None)),
    ),
    "nth": (lambda s, w: (s, w.nth(s.id, 2, rows=(-1, 2))), nth(2, lambda r: r.id, in_rows(-1, 2))),
    "nth known": (lambda s, w: (s, w.nth(s.price, 2, skip_none=True)), nth(2, price, skips=True)),
}
OF_FRAMES: dict[str, tuple[Call, Any]] = {
    "running sum": (lambda s, w: (s, w.sum(s.points)), folded(total, points)),
    "running count": (lambda s, w: (s, w.count(s.price)), folded(len, price)),
    "count of rows": (lambda s, w: (s, w.count()), folded(len, points)),
    "sum of all": (
        lambda s, w: (s, w.sum(s.price, rows=(None, None))),
        folded(total, price, in_rows(None, None)),
    ),
    "sum of rows": (
        lambda s, w: (s, w.sum(s.price, rows=(-2, 0))),
        folded(total, price, in_rows(-2, 0)),
    ),
    "sum behind": (
        lambda s, w: (s, w.sum(s.points, rows=(1, 3))),
        folded(total, points, in_rows(1, 3)),
    ),
    "mean of rows": (
        lambda s, w: (s, w.avg(s.points, rows=(-1, 1))),
        folded(mean, points, in_rows(-1, 1)),
    ),
    "running mean": (lambda s, w: (s, w.avg(s.price)), folded(mean, price)),
    "running min": (lambda s, w: (s, w.min(s.price)), folded(least, price)),
    "max of rows": (
        lambda s, w: (s, w.max(s.price, rows=(0, None))),
        folded(greatest, price, in_rows(0, None)),
    ),
    "median of rows": (
        lambda s, w: (s, w.quantile(s.points, 0.5, rows=(-2, 2))),
        folded(middle, points, in_rows(-2, 2)),
    ),
    "running median": (lambda s, w: (s, w.quantile(s.price, 0.5)), folded(middle, price)),
    "count behind": (
        lambda s, w: (s, w.count(rows=(2, None))),
        folded(len, points, in_rows(2, None)),
    ),
}
OF_DISTANCES: dict[str, tuple[Call, Any]] = {
    "sum": (
        lambda s, w: (s, w.sum(s.points, range=(-3, 0))),
        folded(total, points, in_range(-3, 0)),
    ),
    "count": (
        lambda s, w: (s, w.count(range=(-1, 2))),
        folded(len, points, in_range(-1, 2)),
    ),
    "min": (
        lambda s, w: (s, w.min(s.price, range=(1, 4))),
        folded(least, price, in_range(1, 4)),
    ),
    "first": (
        lambda s, w: (s, w.first(s.id, range=(-2, None))),
        nth(1, lambda r: r.id, in_range(-2, None)),
    ),
    "quantile": (
        lambda s, w: (s, w.quantile(s.points, 0.5, range=(-2, 2))),
        folded(middle, points, in_range(-2, 2)),
    ),
}
SORTS: dict[str, tuple[Callable[[Any], Relation[Any, RowWindow]], Any, Any]] = {
    "points": (lambda t: t.over(order=lambda s: s.points), lambda r: 0, points),
    "points by team": (lambda t: t.over(by="team", order="points"), lambda r: r.team, points),
    "descending by team": (
        lambda t: t.over(by=lambda s: s.team, order=desc(lambda s: s.points)),
        lambda r: r.team,
        lambda r: -r.points,
    ),
    "two keys": (
        lambda t: t.over(by=lambda s: s.id % 2, order=[desc("team"), asc(lambda s: s.points)]),
        lambda r: r.id % 2,
        lambda r: (-r.team, r.points),
    ),
    "none first": (
        lambda t: t.over(order="price", nulls="first"),
        lambda r: 0,
        lambda r: (r.price is not None, r.price != r.price, number(r.price)),
    ),
    "none last": (
        lambda t: t.over(by="team", order=desc("price", nulls="last")),
        lambda r: r.team,
        lambda r: (r.price is None, r.price == r.price, -number(r.price)),
    ),
}
CALLS = {**OF_PLACES, **OF_FRAMES}


def expected(rows: Rows, sort: str, answer: Any) -> list[tuple[Score, Any]]:
    _, by, key = SORTS[sort]
    return [
        (row, answer(part, place, key))
        for part in parts_in_order(rows, by, key)
        for place, row in enumerate(part)
    ]


def as_bag(rows: Any) -> Counter[str]:
    return Counter(repr((row, round(v, 9) if isinstance(v, float) else v)) for row, v in rows)


def assert_as_expected(view: Any, rows: Rows, sort: str, answer: Any, name: str) -> None:
    mine, theirs = as_bag(view), as_bag(expected(rows, sort, answer))
    plain = Counter({_without_kind(k): n for k, n in mine.items()})
    assert plain == Counter({_without_kind(k): n for k, n in theirs.items()}), (name, sort)


def _without_kind(text: str) -> str:
    """Return the text of an answer in which 3.0 is 3: sums of the oracle are floats."""
    return text.removesuffix(")").removesuffix(".0")


def drawn_row(random: Random) -> Score:
    value = random.choice([None, 0.5, 2.0, float(random.randrange(5)), NAN])
    return Score(random.randrange(40), random.randrange(2), random.randrange(12), value)


def drawn_step(random: Random, scores: Any) -> None:
    rows = list(scores)
    for _ in range(random.choice([1, 1, 1, 2, 5, 30])):
        match random.choice(["add", "add", "remove", "update", "again"]):
            case "add":
                scores.add(drawn_row(random))
            case "again" if rows:
                scores.add(random.choice(rows))
            case "remove" | "update" as what if rows:
                row = rows.pop(random.randrange(len(rows)))
                scores.remove(row)
                if what == "update":
                    scores.add(row._replace(points=random.randrange(12)))


def played_steps(random: Random, db: Database, scores: Any, count: int) -> Iterator[int]:
    """Play steps, each a commit, and yield after each; every fourth commit is refused."""
    for step in range(count):
        if step % 4 == 3:
            with pytest.raises(ZeroDivisionError), db.transaction():
                drawn_step(random, scores)
                scores.add(Score(1, 1, 99, None))
        else:
            with db.transaction():
                drawn_step(random, scores)
        yield step


@pytest.mark.parametrize("seed", seeds(24, 4))
def test_answers_after_each_change_are_those_of_sorted_lists(seed: int) -> None:
    """All functions over some sorts; a commit in four is rolled back, another is refused."""
    random = Random(seed)
    db = Database()
    scores = db.table(Score, name="scores")
    scores.add_all([drawn_row(random) for _ in range(random.choice([0, 3, 60]))])
    views = {}
    for sort in random.sample(sorted(SORTS), 2):
        calls = OF_DISTANCES if sort in ("points", "points by team", "descending by team") else {}
        for name, (call, answer) in (CALLS | calls).items():
            made = SORTS[sort][0](scores).select(call)
            views[name, sort] = (made.materialize(), answer)
    refusing = scores.select(lambda s: 1 // (s.points - 99)).materialize()
    for step in played_steps(random, db, scores, 8):
        for (name, sort), (view, answer) in views.items():
            assert_as_expected(view, list(scores), sort, answer, name)
            if step in (3, 7):
                view.verify()
    assert not refusing.closed


@pytest.mark.parametrize("seed", seeds(16, 3))
def test_first_rows_of_partitions_are_those_of_all_ranks(seed: int) -> None:
    """A condition on a rank is a limit of the window; the answers stay those of all rows."""
    random = Random(seed)
    db = Database()
    scores = db.table(Score, name="scores")
    ranked = scores.over(by="team", order=desc("points"))
    most = random.randrange(4)
    best = ranked.where(lambda s, w: w.rank() <= most).select(lambda s, w: (s, w.lag(s.id)))
    every = ranked.select(lambda s, w: (s, w.rank(), w.lag(s.id)))
    assert f"<= {most} by" in str(best.explain())
    shown, known = best.materialize(), every.materialize()
    for _ in range(12):
        with db.transaction():
            drawn_step(random, scores)
        wanted = [(row, before) for row, rank, before in known if rank <= most]
        assert sorted(shown, key=repr) == sorted(wanted, key=repr)
        shown.verify()


def test_a_window_of_all_rows_needs_no_key_and_no_order() -> None:
    numbers = Database().table(int, name="numbers")
    shares = numbers.over().select(lambda n, w: (n, w.sum(n), w.count())).materialize()
    numbers.add_all([1, 3])
    assert sorted(shares) == [(1, 4, 2), (3, 4, 2)]
    shares.verify()


def test_rows_of_negative_weight_have_no_answers() -> None:
    db = Database()
    ordered, sent = db.table(int, name="ordered"), db.table(int, name="sent")
    left = ordered.union_all(sent.negate())
    view = left.over(order=lambda n: n).select(lambda n, w: (n, w.row_number(), w.sum(n)))
    shown = view.materialize()
    sent.add_all([3, 7])
    assert list(shown) == []
    ordered.add_all([3, 5, 5])
    assert sorted(shown) == [(5, 1, 10), (5, 2, 10)]
    ordered.add(7)
    assert sorted(shown) == [(5, 1, 10), (5, 2, 10)]
    sent.remove(3)
    assert sorted(shown) == [(3, 1, 3), (5, 2, 13), (5, 3, 13)]
    shown.verify()


def test_ties_are_in_one_order_whatever_the_history() -> None:
    """Rows with equal keys stand in the order of their fields, as they came or did not."""
    numbers = []
    for seed in range(6):
        db = Database()
        scores = db.table(Score, name="scores")
        view = scores.over(order="points").select(lambda s, w: (s.id, w.row_number())).materialize()
        rows = [Score(n, 0, 5, None) for n in range(12)]
        Random(seed).shuffle(rows)
        for row in rows:
            scores.add(row)
        scores.remove(rows[0])
        scores.add(rows[0])
        numbers.append(sorted(view))
    assert all(each == [(n, n + 1) for n in range(12)] for each in numbers)


def test_a_none_among_keys_is_compared_like_any_value() -> None:
    """The commit is refused, as by `order_by` without `nulls=`, and nothing changes."""
    db = Database()
    scores = db.table(Score, name="scores")
    view = scores.over(order="price").select(lambda s, w: (s.id, w.rank())).materialize()
    other = scores.over(order=desc("price")).select(lambda s, w: w.rank()).materialize()
    scores.add(Score(1, 1, 1, 2.5))
    with pytest.raises(TypeError):
        scores.add(Score(2, 1, 1, None))
    assert list(view) == [(1, 1)] and list(other) == [1]
    scores.add(Score(3, 1, 1, 1.5))
    assert sorted(view) == [(1, 2), (3, 1)]
    view.verify()


def test_distances_of_dates() -> None:
    class Sale(NamedTuple):
        day: date
        amount: int

    db = Database()
    sales = db.table(Sale, name="sales")
    week = timedelta(days=-6)
    view = (
        sales.over(order=lambda s: s.day)
        .select(lambda s, w: (s.day.day, w.sum(s.amount, range=(week, timedelta(0)))))
        .materialize()
    )
    sales.add_all([Sale(date(2026, 11, n), n) for n in (1, 3, 7, 8, 20)])
    assert sorted(view) == [(1, 1), (3, 4), (7, 11), (8, 18), (20, 20)]
    sales.remove(Sale(date(2026, 11, 7), 7))
    assert sorted(view) == [(1, 1), (3, 4), (8, 11), (20, 20)]
    view.verify()


# Forms.


def scores_of(db: Database) -> Any:
    scores = db.table(Score, name="scores")
    rows = [(1, 0, 5), (2, 0, 7), (3, 1, 7), (4, 1, 2), (5, 1, 7)]
    scores.add_all([Score(*each, None) for each in rows])
    return scores


RANKED = [(1, 2, 7), (2, 1, None), (3, 1, None), (4, 3, 7), (5, 1, 7)]
"""The id of a score, its rank in its team, and the points of the row before."""


def test_forms_of_one_window_are_one_plan() -> None:
    """A callable, named columns, `bind`, a comprehension, a function and a condition above."""
    db = Database()
    scores = scores_of(db)
    ranked = scores.over(by="team", order=desc("points"))

    @db.query
    def written() -> list[tuple[int, int, int | None]]:
        return [
            (s.id, w.rank(), w.lag(s.points))
            for s, w in scores.over(by=lambda s: s.team, order=desc(lambda s: s.points))
        ]

    forms: list[Any] = [
        ranked.select(lambda s, w: (s.id, w.rank(), w.lag(s.points))),
        ranked.select(
            id=lambda s, w: s.id, rank=lambda s, w: w.rank(), before=lambda s, w: w.lag(s.points)
        ),
        ranked.bind(lambda s, w: s.id, lambda s, w: w.rank(), lambda s, w: w.lag(s.points)),
        ranked.extend(rank=lambda s, w: w.rank()).select(
            lambda s, w, rank: (s.id, rank, w.lag(s.points))
        ),
        ranked.where(lambda s, w: w.rank() < 9).select(
            lambda s, w: (s.id, w.rank(), w.lag(s.points))
        ),
        live((s.id, w.rank(), w.lag(s.points)) for s, w in ranked),
        written,
    ]
    for form in forms:
        view = form.materialize()
        assert sorted(view) == RANKED
        view.verify()


def test_two_windows_of_one_row() -> None:
    """Each `over` appends a binding; the second may read the answers of the first."""
    db = Database()
    scores = scores_of(db)
    both = scores.over(by="team", order=desc("points")).over(order=lambda s, w: w.rank())
    view = both.select(
        lambda s, in_team, in_all: (s.id, in_team.rank(), in_all.dense_rank(), in_all.count())
    ).materialize()
    assert sorted(view) == [(1, 2, 2, 4), (2, 1, 1, 3), (3, 1, 1, 3), (4, 3, 3, 5), (5, 1, 1, 3)]
    scores.remove(Score(2, 0, 7, None))
    assert sorted(view) == [(1, 1, 1, 3), (3, 1, 1, 3), (4, 3, 2, 4), (5, 1, 1, 3)]
    view.verify()


def test_windows_are_of_all_rows_whatever_a_query_selects() -> None:
    """Conditions, joins and correlated queries above a window choose among its rows."""
    db = Database()
    scores = scores_of(db)
    teams = db.table(int, name="teams")
    ranked = scores.over(order=desc("points"))

    @db.query
    def of_teams() -> list[tuple[int, int, int]]:
        return [(t, s.id, w.rank()) for t in teams for s, w in ranked if s.team == t]

    best = teams.select(
        lambda t: (t, min((w.rank() for s, w in ranked if s.team == t), default=0))
    ).materialize()
    joined = (
        ranked.join(teams, on=lambda s, w, t: s.team == t)
        .select(lambda s, w, t: (t, s.id, w.rank()))
        .materialize()
    )
    view = of_teams.materialize()
    teams.add_all([0, 2])
    assert sorted(view) == sorted(joined) == [(0, 1, 4), (0, 2, 1)]
    assert sorted(best) == [(0, 1), (2, 0)]
    scores.add(Score(6, 1, 9, None))
    assert sorted(view) == sorted(joined) == [(0, 1, 5), (0, 2, 2)]
    assert sorted(best) == [(0, 2), (2, 0)]
    for each in (view, joined, best):
        each.verify()


def test_groups_by_a_part_of_the_order() -> None:
    db = Database()
    halves = scores_of(db).over(order="points").group_by(lambda s, w: w.ntile(2))
    assert dict(halves.aggregate(Count()).materialize()) == {1: 3, 2: 2}


def test_aggregates_of_a_whole_partition_need_no_order() -> None:
    db = Database()
    scores = scores_of(db)
    view = scores.over(by="team").select(
        lambda s, w: (s.id, w.count(), w.max(s.points), s.points - w.avg(s.points))
    )
    shown = view.materialize()
    assert sorted(shown)[:2] == [(1, 2, 7, -1.0), (2, 2, 7, 1.0)]
    scores.remove(Score(2, 0, 7, None))
    assert sorted(shown)[0] == (1, 1, 5, 0.0)


def test_keys_and_arguments_may_be_queries() -> None:
    db = Database()
    scores = scores_of(db)
    bonus = db.table(tuple[int, int], name="bonus")
    view = (
        scores.over(order=lambda s: s.points + sum(b[1] for b in bonus if b[0] == s.id))
        .select(lambda s, w: (s.id, w.rank()))
        .materialize()
    )
    assert sorted(view) == [(1, 2), (2, 3), (3, 3), (4, 1), (5, 3)]
    bonus.add((4, 90))
    assert sorted(view) == [(1, 1), (2, 2), (3, 2), (4, 5), (5, 2)]
    view.verify()


def test_a_query_in_the_arguments_of_a_window() -> None:
    db = Database()
    scores = scores_of(db)
    bonus = db.table(tuple[int, int], name="bonus")
    view = (
        scores.over(order="id")
        .select(lambda s, w: (s.id, w.sum(sum(b[1] for b in bonus if b[0] == s.id))))
        .materialize()
    )
    bonus.add_all([(2, 10), (4, 90)])
    assert sorted(view) == [(1, 0), (2, 10), (3, 10), (4, 100), (5, 100)]
    view.verify()


def test_rows_that_raise_are_left_out_on_request() -> None:
    db = Database()
    scores = scores_of(db)
    view = (
        scores.over(order=lambda s: 10 // s.points)
        .select(lambda s, w: (s.id, w.row_number()))
        .materialize(on_error="drop")
    )
    scores.add(Score(6, 1, 0, None))
    assert [number for _, number in sorted(view, key=lambda r: r[1])] == [1, 2, 3, 4, 5]
    assert len(view.errors) == 1
    view.verify()


def test_a_window_is_that_of_sql() -> None:
    """Methods and SQL's OVER make the same node: one mechanism."""
    db = Database()
    scores = scores_of(db)
    mine = scores.over(by="team", order="points").select(
        lambda s, w: (s.id, w.rank(), w.sum(s.points, rows=(-1, 0)))
    )
    text = (
        "select id, rank() over (partition by team order by points),"
        " sum(points) over (partition by team order by points rows 1 preceding) from scores"
    )
    theirs = db.sql(text)
    assert sorted(map(tuple, theirs.materialize())) == sorted(mine.materialize())
    assert "reduce RANK()" in str(theirs.explain()) and "reduce rank()" in str(mine.explain())


def test_rows_with_equal_keys_stand_in_the_order_of_their_fields() -> None:
    """Numbers compare by their values, not by their texts, in any order of arrival."""

    @dataclass(frozen=True)
    class Part:
        id: int
        size: float | None
        at: timedelta

    rows = [
        Part(number, size, timedelta(hours=hours))
        for number in (9, 10)
        for size in (None, -2.0, -1.0, 5e-324, 9.0, 10.0)
        for hours in (9, 10)
    ]
    for seed in range(3):
        table = Database().table(Part)
        view = table.over(order=lambda p: 0).select(lambda p, w: (w.row_number(), p)).materialize()
        for row in Random(seed).sample(rows, len(rows)):
            table.add(row)
        assert [part for _, part in sorted(view, key=lambda each: each[0])] == rows


class Mark(NamedTuple):
    name: str
    level: Any


ALONE: dict[str, Callable[[Any, RowWindow], Any]] = {
    "row_number": lambda m, w: (m.name, w.row_number()),
    "lag": lambda m, w: (m.name, w.lag(m.name)),
    "min of rows": lambda m, w: (m.name, w.min(m.name, rows=(-1, 1))),
    "row_number and lag": lambda m, w: (m.name, w.row_number(), w.lag(m.name)),
}


@pytest.mark.parametrize("level", [None, 1j])
@pytest.mark.parametrize("on_error", ["raise", "drop"])
@pytest.mark.parametrize("name", ALONE)
def test_a_row_alone_whose_key_has_no_order_can_leave(name: str, on_error: Any, level: Any) -> None:
    db = Database()
    marks = db.table(Mark, name="marks")
    view = marks.over(order="level").select(ALONE[name]).materialize(on_error=on_error)
    marks.add(Mark("a", level))
    assert len(view) == 1
    marks.remove(Mark("a", level))
    assert not view
    marks.add(Mark("a", level))
    if on_error == "drop":
        marks.add(Mark("b", 2))
        assert not view
    else:
        with pytest.raises(TypeError):
            marks.add(Mark("b", 2))
    marks.update(Mark("a", level), Mark("a", 1))
    assert len(view) == len(marks)
    view.verify()


def test_a_commit_may_leave_a_row_alone_whose_key_has_no_order() -> None:
    """The many rows that leave, and the one that comes, are not sorted by their keys."""
    db = Database()
    readings = db.table(tuple, name="readings")
    before = readings.over(order=lambda r: r[0]).select(lambda r, w: (r, w.lag(r)))
    view = before.materialize()
    many = [(n, "old") for n in range(30)]
    readings.add_all(many)
    for gone, came in ((many, [(None, "new")]), ([(None, "new")], many)):
        with db.transaction():
            readings.remove_all(gone)
            readings.add_all(came)
        expected = zip(came, [None, *came], strict=False)
        assert sorted(view, key=repr) == sorted(expected, key=repr)
    with pytest.raises(TypeError):
        readings.add((None, "new"))
    view.verify()
