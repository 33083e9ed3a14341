"""Places of rows that are computed when they are read, beside plain Python over sorted lists."""

from __future__ import annotations

import pickle
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from copy import copy, deepcopy
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database, Delta, Relation, RowWindow, desc
from reactive.engine.operators.windows import placed
from tests.budget import seeds
from tests.thresholds import thresholds


class Score(NamedTuple):
    name: str
    team: int
    points: int


Windowed = Relation[Score, RowWindow]
Answer = Callable[[list[Score], int], Any]


def keys(part: list[Score]) -> list[int]:
    return [-row.points for row in part]


def rank(part: list[Score], place: int) -> int:
    return bisect_left(keys(part), keys(part)[place]) + 1


def dense_rank(part: list[Score], place: int) -> int:
    return len({key for key in keys(part) if key <= keys(part)[place]})


def row_number(part: list[Score], place: int) -> int:
    return place + 1


def percent_rank(part: list[Score], place: int) -> float:
    return (rank(part, place) - 1) / (len(part) - 1) if len(part) > 1 else 0.0


def cume_dist(part: list[Score], place: int) -> float:
    return bisect_right(keys(part), keys(part)[place]) / len(part)


def third(part: list[Score], place: int) -> int:
    small, larger = divmod(len(part), 3)
    ends = [small * n + min(n, larger) for n in (1, 2, 3)]
    return bisect_right(ends, place) + 1


QUERIES: dict[str, tuple[Callable[[Windowed], Relation[Any]], tuple[Answer, ...]]] = {
    "row_number": (lambda r: r.select(lambda s, w: (s.name, w.row_number())), (row_number,)),
    "rank": (lambda r: r.select(lambda s, w: (s.name, w.rank())), (rank,)),
    "dense_rank": (lambda r: r.select(lambda s, w: (s.name, w.dense_rank())), (dense_rank,)),
    "percent_rank": (lambda r: r.select(lambda s, w: (s.name, w.percent_rank())), (percent_rank,)),
    "cume_dist": (lambda r: r.select(lambda s, w: (s.name, w.cume_dist())), (cume_dist,)),
    "ntile": (lambda r: r.select(lambda s, w: (s.name, w.ntile(3))), (third,)),
    "two": (
        lambda r: r.select(lambda s, w: (s.name, w.rank(), w.row_number())),
        (rank, row_number),
    ),
    "all": (
        lambda r: r.select(
            lambda s, w: (
                s.name,
                w.rank(),
                w.dense_rank(),
                w.percent_rank(),
                w.cume_dist(),
                w.ntile(3),
                w.row_number(),
            )
        ),
        (rank, dense_rank, percent_rank, cume_dist, third, row_number),
    ),
}
BYS: dict[str, Any] = {"all": None, "team": "team"}


def expected(rows: list[Score], by: str, answers: tuple[Answer, ...]) -> Counter[Any]:
    """Return the rows of a view from scratch."""
    return Counter(row for part in parts_of(rows, by).values() for row in shown(part, answers))


def parts_of(rows: list[Score], by: str) -> dict[Any, list[Score]]:
    found: dict[Any, list[Score]] = {}
    for row in sorted(rows, key=lambda s: (-s.points, s)):
        found.setdefault((row.team,) if by == "team" else (), []).append(row)
    return found


def shown(part: list[Score], answers: tuple[Answer, ...]) -> list[Any]:
    places = enumerate(part)
    return [(row.name, *(answer(part, place) for answer in answers)) for place, row in places]


class Replica:
    """The rows of a view by its deltas, which are read at once, later, or never."""

    def __init__(self, when: str, *, has_names: bool) -> None:
        self.rows: Counter[Any] = Counter()
        self.names: dict[Any, list[str]] = {}
        self._when = when
        self._has_names = has_names  # else peers are in any order
        self._waiting: list[Delta[Any]] = []
        self.told = 0

    def __call__(self, delta: Delta[Any]) -> None:
        self.told += 1
        if self._when == "later":
            self._waiting.append(delta)
        else:
            self._apply(delta)

    def catch_up(self) -> None:
        for delta in self._waiting:
            self._apply(delta)
        self._waiting.clear()

    def _apply(self, delta: Delta[Any]) -> None:
        if self._when != "only places":
            for row, weight in delta.items():
                self.rows[row] += weight
                assert self.rows[row] >= 0
        for edit in delta.places if self._has_names else ():
            part = self.names.setdefault(edit.path, [])
            if edit.weight > 0:
                part.insert(edit.position, edit.row[0])
            else:
                assert part.pop(edit.position) == edit.row[0]


def some_score(random: Random) -> Score:
    return Score(
        random.choice("abcdefgh"), random.randrange(2), random.randrange(random.choice((3, 30)))
    )


class Broken(Exception):
    pass


@pytest.fixture(autouse=True, params=[2, 256])
def _load(request: Any) -> Iterator[None]:
    entries = "reactive.engine.operators.windows.entries"
    with thresholds({f"{entries}.LOAD": request.param}):
        yield


@pytest.mark.parametrize("seed", seeds(12))
@pytest.mark.parametrize("when", ["at once", "later", "only places"])
@pytest.mark.parametrize("by", BYS)
@pytest.mark.parametrize("name", QUERIES)
def test_views_and_deltas_are_as_from_scratch(name: str, by: str, when: str, seed: int) -> None:
    random, db = Random(seed), Database()
    scores = db.table(Score, name="scores")
    rows = [some_score(random) for _ in range(random.choice((0, 3, 40)))]
    scores.add_all(rows)
    query, answers = QUERIES[name]
    view = query(scores.over(by=BYS[by], order=desc("points"))).materialize()
    assert is_placed(view)
    above = view.where(lambda r: r[1] != 2).materialize()
    replica = Replica(when, has_names=row_number in answers)
    subscription = view.subscribe(replica, snapshot=True)
    replica.catch_up()
    replica.names = {key: [row.name for row in part] for key, part in parts_of(rows, by).items()}
    for step in history(random, rows):
        before = rows.copy()
        try:
            with db.transaction():
                apply_step(scores, rows, step)
                if random.random() < 0.2:
                    raise Broken
        except Broken:
            rows[:] = before
        wanted = expected(rows, by, answers)
        if random.random() < 0.3:
            assert view.count(some_shown(random, wanted)) >= 0
        if when == "at once" or random.random() < 0.3:
            replica.catch_up()
            if when != "only places":
                assert +replica.rows == wanted
            if row_number in answers:
                parts = parts_of(rows, by)
                names = {key: [row.name for row in part] for key, part in parts.items()}
                assert {key: part for key, part in replica.names.items() if part} == names
        if random.random() < 0.7:
            assert Counter(view) == wanted
            assert Counter(dict(view.items())) == wanted
            assert len(view) == len(rows)
            assert all(view.count(row) == count for row, count in wanted.items())
            assert Counter(above) == Counter({r: n for r, n in wanted.items() if r[1] != 2})
    view.verify()
    above.verify()
    subscription.close()


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("by", BYS)
def test_merged_and_pickled_deltas_keep_places(by: str, seed: int) -> None:
    random, db = Random(seed), Database()
    scores = db.table(Score, name="scores")
    rows = [some_score(random) for _ in range(random.choice((0, 3, 40)))]
    scores.add_all(rows)
    query, _ = QUERIES["row_number"]
    view = query(scores.over(by=BYS[by], order=desc("points"))).materialize()
    replica = Replica("at once", has_names=True)
    replica.rows.update(view)
    replica.names = {key: [row.name for row in part] for key, part in parts_of(rows, by).items()}
    late = LateExecutor()
    with view.subscribe(replica, on=late, maxsize=random.choice((1, 2)), when_full="merge"):
        other, told = Replica("only places", has_names=True), list[Delta[Any]]()
        other.names = {key: part.copy() for key, part in replica.names.items()}
        kept = view.subscribe(told.append)
        for step in history(random, rows):
            with db.transaction():
                apply_step(scores, rows, step)
            for delta in told:
                read = random.choice((copy, deepcopy, lambda d: pickle.loads(pickle.dumps(d))))(
                    delta
                )
                assert read == delta and read.added == delta.added
                other(read)
            told.clear()
            if random.random() < 0.3:
                late.run()
            wanted = {key: [s.name for s in part] for key, part in parts_of(rows, by).items()}
            assert {key: part for key, part in other.names.items() if part} == wanted
        late.run()
        assert +replica.rows == Counter(view)
        assert {key: part for key, part in replica.names.items() if part} == wanted
        kept.close()


class LateExecutor(Executor):
    """Runs what is submitted when it is told to."""

    def __init__(self) -> None:
        self._waiting: list[Callable[[], object]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._waiting.append(lambda: fn(*args, **kwargs))
        return Future()

    def run(self) -> None:
        while self._waiting:
            self._waiting.pop(0)()


def test_a_merged_snapshot_has_no_places() -> None:
    db = Database()
    scores = db.table(Score, name="scores")
    scores.add(Score("a", 0, 3))
    query, _ = QUERIES["row_number"]
    view: Any = query(scores.over(order=desc("points"))).materialize()
    late, told = LateExecutor(), list[Any]()
    with view.subscribe(told.append, on=late, maxsize=1, when_full="merge", snapshot=True):
        scores.add(Score("b", 0, 5))
        late.run()
    (delta,) = told
    assert delta.is_snapshot and set(delta.added) == {("a", 2), ("b", 1)} and not delta.places


def some_shown(random: Random, rows: Counter[Any]) -> Any:
    return random.choice(list(rows) or [("x", 1)])


def apply_step(scores: Any, rows: list[Score], step: list[tuple[Score, int]]) -> None:
    """Make the changes of a commit, in the table and in the list of its rows."""
    for row, weight in step:
        if weight > 0:
            scores.add(row)
            rows.append(row)
        else:
            scores.remove(row)
            rows.remove(row)


def history(random: Random, rows: list[Score]) -> Iterator[list[tuple[Score, int]]]:
    """Yield the changes of each commit: few, many, updates, all rows."""
    for _ in range(12):
        kind = random.choice(("few", "few", "update", "update", "many", "all"))
        left = random.sample(rows, len(rows))
        if kind == "update" and left:
            old = left[0]
            yield [(old, -1), (some_score(random)._replace(name=old.name), 1)]
        elif kind == "all":
            yield [(row, -1) for row in left[random.randrange(3) :]]
        else:
            count = 3 if kind == "few" else 30
            gone = left[: random.randrange(count)]
            came = [some_score(random) for _ in range(random.randrange(count))]
            changes = [*((row, -1) for row in gone), *((row, 1) for row in came)]
            yield random.sample(changes, len(changes)) if kind == "few" else changes


def is_placed(view: Any) -> bool:
    (below,) = view._node.inputs
    return isinstance(below.operator, placed.PlacedRows)


class Maybe(NamedTuple):
    name: str
    points: int | None


@pytest.mark.parametrize("function", ["rank", "row_number", "cume_dist"])
def test_a_key_that_has_no_order_fails_its_commit(function: str) -> None:
    """The rule of columns that are stored, which the second view has."""
    db = Database()
    rows = db.table(Maybe, name="rows")
    window = rows.over(order="points")
    number = {
        "rank": lambda s, w: (s.name, w.rank()),
        "row_number": lambda s, w: (s.name, w.row_number()),
        "cume_dist": lambda s, w: (s.name, w.cume_dist()),
    }[function]
    view = window.select(number).materialize()
    if function == "row_number":
        rows.add(Maybe("a", None))  # alone, it is compared with no key
    else:
        with pytest.raises(TypeError):
            rows.add(Maybe("a", None))
        rows.add(Maybe("a", 1))
    before = list(view)
    with pytest.raises(TypeError):
        rows.add_all([Maybe("b", None), Maybe("c", 3)])
    assert list(view) == before == [("a", 1)]
    view.verify()
    with pytest.raises(TypeError):
        rows.add(Maybe("d", 2 if function == "row_number" else None))
    view.verify()


def test_a_view_that_is_read_by_others_is_changed_row_by_row() -> None:
    db = Database()
    scores = db.table(Score, name="scores")
    ranked = scores.over(order=desc("points")).select(lambda s, w: (s.name, w.rank()))
    view = ranked.materialize()
    firsts = view.where(lambda r: r[1] == 1).materialize()
    names = view.join(firsts, on=lambda r, f: r[1] == f[1] + 1).select(lambda r, f: r[0])
    seconds = names.materialize()
    scores.add_all([Score("a", 0, 3), Score("b", 0, 5)])
    assert is_placed(view) and sorted(view) == [("a", 2), ("b", 1)]
    scores.add(Score("c", 0, 7))
    assert list(view) == [("c", 1), ("b", 2), ("a", 3)]
    assert list(firsts) == [("c", 1)] and list(seconds) == ["b"]
    for each in (view, firsts, seconds):
        each.verify()


def test_sql_reads_places_too() -> None:
    db = Database()
    scores = db.table(Score, name="scores")
    text = "select name, rank() over (partition by team order by points desc) as r from scores"
    view = db.sql(text).materialize()
    scores.add_all([Score("a", 0, 3), Score("b", 0, 5), Score("c", 1, 1)])
    assert is_placed(view) and sorted(view) == [("a", 2), ("b", 1), ("c", 1)]
    assert view.count(("a", 2)) == 1 and ("a", 1) not in view
    scores.remove(Score("b", 0, 5))
    assert ("a", 1) in view and ("a", 2) not in view
    view.verify()


def test_the_first_row_that_is_asked_for_makes_the_bag_which_follows() -> None:
    db = Database()
    scores = db.table(Score, name="scores")
    scores.add_all([Score(f"s{n}", 0, n) for n in range(300)])
    ranked = scores.over(order=desc("points")).select(lambda s, w: (s.name, w.rank()))
    view = ranked.materialize()
    for n in range(300, 320):
        assert (f"s{n - 1}", 1) in view
        scores.add(Score(f"s{n}", 0, n))
        assert (f"s{n - 1}", 1) not in view and view.count((f"s{n}", 1)) == 1
    assert dict(view.items()) == {(f"s{319 - n}", n + 1): 1 for n in range(320)}


def test_no_rows_leave_no_state() -> None:
    scores = Database().table(Score, name="scores")
    ranked = scores.over(by="team", order=desc("points")).select(lambda s, w: (s.name, w.rank()))
    view = ranked.materialize()
    scores.add_all([Score("a", n % 7, n) for n in range(100)])
    assert len(list(view)) == view.stats().rows
    scores.clear()
    assert not view and view.stats().rows == 0


@pytest.mark.parametrize("seed", seeds(30))
@pytest.mark.parametrize("name", ["rank", "row_number", "percent_rank"])
def test_partitions_with_keys_without_an_order_are_dropped(name: str, seed: int) -> None:
    """While keys cannot be compared, the partition has no rows, as in SQL."""
    random, db = Random(seed), Database()
    table = db.table(tuple[int, int, Any], name="rows")
    window: Any = table.over(by=lambda r: r[0], order=lambda r: r[2])
    numbered = {
        "rank": lambda r, w: (r[1], w.rank()),
        "row_number": lambda r, w: (r[1], w.row_number()),
        "percent_rank": lambda r, w: (r[1], w.percent_rank()),
    }[name]
    view = window.select(numbered).materialize(on_error="drop")
    assert is_placed(view)
    replica, names = Counter[Any](), dict[Any, list[int]]()

    def told(delta: Delta[Any]) -> None:
        for row, weight in delta.items():
            replica[row] += weight
        for edit in delta.places:
            part = names.setdefault(edit.path, [])
            if edit.weight > 0:
                part.insert(edit.position, edit.row[0])
            else:
                assert part.pop(edit.position) == edit.row[0]

    rows: list[tuple[int, int, Any]] = []
    with view.subscribe(told):
        for _ in range(40):
            before = rows.copy()
            try:
                with db.transaction():
                    for _ in range(random.choice((1, 1, 2, 9))):
                        if rows and random.random() < 0.5:
                            table.remove(gone := random.choice(rows))
                            rows.remove(gone)
                        else:
                            key = (
                                random.choice((1, 2, 3, 4, 5, "x")) if random.random() < 0.3 else 7
                            )
                            rows.append((random.randrange(2), random.randrange(99), key))
                            table.add(rows[-1])
                    if random.random() < 0.2:
                        raise Broken
            except Broken:
                rows[:] = before
            view.verify()
            assert Counter(view) == +replica
            kept = [r for r in rows if len({type(o[2]) for o in rows if o[0] == r[0]}) == 1]
            assert sorted(n for n, _ in view) == sorted(r[1] for r in kept)
            if name == "row_number":
                for part in {r[0] for r in kept}:
                    wanted = sorted((r for r in kept if r[0] == part), key=lambda r: (r[2], r[1]))
                    assert names[(part,)] == [r[1] for r in wanted]


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("name", ["rank", "dense_rank", "row_number"])
def test_the_first_rows_by_a_place_are_those_of_all_rows(name: str, seed: int) -> None:
    random, db = Random(seed), Database()
    scores = db.table(Score, name="scores")
    query, answers = QUERIES[name]
    by, count, offset = random.choice(list(BYS)), random.randrange(1, 5), random.randrange(3)
    places = query(scores.over(by=BYS[by], order=desc("points")))
    view = places.order_by(lambda r: r[1]).limit(count, offset).materialize()
    text = str(places.order_by(lambda r: r[1]).limit(count, offset).explain(costs=True))
    assert f"row[1] <= {count + offset}" in text
    rows: list[Score] = []
    for step in history(random, rows):
        with db.transaction():
            apply_step(scores, rows, step)
        wanted = sorted(expected(rows, by, answers).elements(), key=lambda r: (r[1], r))
        assert list(view) == wanted[offset : offset + count]
    view.verify()
