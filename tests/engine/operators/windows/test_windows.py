"""Windows that are kept, after random histories, against their definition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cmp_to_key
from random import Random
from typing import Any, NamedTuple

import pytest

from reactive import Database
from reactive.engine.collections.value_order import rank_of
from reactive.engine.collections.zset import UniformDelta, canonical
from reactive.engine.operators.windows import entries, partition
from reactive.engine.operators.windows.frames import CURRENT, UNBOUNDED, WHOLE, Edge, Frame
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.groups import WindowGroups
from reactive.engine.operators.windows.partition import WindowPartition
from reactive.engine.operators.windows.spans import Spans
from reactive.engine.operators.windows.window import Window
from tests.counted_calls import calls_of
from tests.moments import Moments

NAN = canonical(math.nan)
KEYS: dict[str, Sequence[Any]] = {
    "numbers": [None, 0, 1, 2, 3, 5, 8],
    "floats": [None, NAN, -1.5, 0.0, 0.5, 2.0],
    "texts": [None, "", "a", "b", "c"],
}
VALUES = [None, None, 0, 1, -2, 7, 7]
FLOATS = [None, NAN, 0.1, 0.2, -1e10, 0.0]
OFFSETS: Sequence[Edge] = [("preceding", 0), ("preceding", 1), ("preceding", 2)]
AHEAD: Sequence[Edge] = [("following", 0), ("following", 1), ("following", 2)]
PLAIN = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")
Row = tuple[Any, ...]


# The definition.


def compared(one: Row, other: Row, directions: Sequence[tuple[bool, bool | None]]) -> int:
    for (descending, nulls_first), a, b in zip(directions, one, other, strict=True):
        if a is None or b is None:
            if a is b:
                continue
            return -1 if (a is None) == nulls_first else 1
        found = after(a, b) - after(b, a)
        if found:
            return -found if descending else found
    return 0


def after(a: Any, b: Any) -> bool:
    """NaN is behind all numbers."""
    return b == b if a != a else bool(a > b)


class Slow:
    """All that a window says of some rows, by comparing each with each."""

    def __init__(self, window: Window, rows: Sequence[Row]) -> None:
        self.directions = window.directions
        self.rows = in_order(sorted(rows, key=rank_of), window.directions)
        self.keys = [row[2] for row in self.rows]
        places = range(len(self.rows))
        self.group = [0] * len(self.rows)
        for n in places[1:]:
            self.group[n] = self.group[n - 1] + bool(self.compared(n - 1, n))
        answers = [[self.answer(asked, n) for asked in window.functions] for n in places]
        self.shown = [(*row[0], *a) for row, a in zip(self.rows, answers, strict=True)]

    def compared(self, one: int, other: int) -> int:
        return compared(self.keys[one], self.keys[other], self.directions)

    def answer(self, asked: Asked, n: int) -> Any:
        size, places = len(self.rows), range(len(self.rows))
        match asked.function:
            case "row_number":
                return n + 1
            case "rank":
                return sum(self.group[m] < self.group[n] for m in places) + 1
            case "dense_rank":
                return self.group[n] + 1
            case "percent_rank":
                return (self.answer(replace(asked, function="rank"), n) - 1) / max(1, size - 1)
            case "cume_dist":
                return sum(self.group[m] <= self.group[n] for m in places) / size
            case "ntile":
                return self.tile(n, *asked.more)
            case "shifted":
                return self.shifted(asked, n)
        values = [self.value(asked, m) for m in places if self.sees(asked.frame, n, m)]
        known = [value for value in values if value is not None]
        if asked.function == "nth":
            (nth,) = asked.more
            values = known if asked.ignores_nulls else values
            at = nth - 1 if nth > 0 else len(values) + nth
            return values[at] if 0 <= at < len(values) else None
        return self.folded(asked, known)

    def folded(self, asked: Asked, known: list[Any]) -> Any:
        match asked.function:
            case "count":
                return len(known)
            case "sum":
                return total(known) if known else None
            case "avg":
                return canonical(total(known) / len(known)) if known else None
            case "min" | "max" as name:
                found = in_order([((), (), (v,)) for v in known], ((False, False),))
                return found[0 if name == "min" else -1][2][0] if found else None
            case other:
                assert callable(other)
                return other(known)

    def value(self, asked: Asked, n: int) -> Any:
        return 1 if asked.argument is None else self.rows[n][3][asked.argument]

    def tile(self, n: int, count: int) -> int:
        sizes = [len(self.rows) // count + (t < len(self.rows) % count) for t in range(count)]
        return next(t + 1 for t in range(count) if n < sum(sizes[: t + 1]))

    def shifted(self, asked: Asked, n: int) -> Any:
        by, default = asked.more
        places: list[int] = list(range(len(self.rows)))
        if asked.ignores_nulls and by:
            places = [m for m in places if m == n or self.value(asked, m) is not None]
        at = places.index(n) + by
        if 0 <= at < len(places):
            return self.value(asked, places[at])
        return None if default is None else self.rows[n][3][default]

    def sees(self, frame: Frame, n: int, m: int) -> bool:
        excluded = {
            "": False,
            "current": m == n,
            "group": self.group[m] == self.group[n],
            "ties": m != n and self.group[m] == self.group[n],
        }[frame.exclude]
        start, end = self.beside(frame, frame.start, n, m), self.beside(frame, frame.end, n, m)
        return not excluded and start >= 0 and end <= 0

    def beside(self, frame: Frame, edge: Edge, n: int, m: int) -> Any:
        """Compare a row with an edge of another's frame: positive after it, 0 at it."""
        side, offset = edge
        if side == "unbounded":
            return 0
        by = 0 if side == "current" else offset if side == "following" else -offset
        if frame.kind == "rows":
            return m - n - by
        key, other = self.keys[n][0], self.keys[m][0]
        if frame.kind == "groups" or side == "current" or key is None:
            return self.group[m] - self.group[n] - (by if frame.kind == "groups" else 0)
        if other is None:
            return self.compared(m, n)
        (descending, nulls), *_ = self.directions
        wanted = key - by if descending else key + by
        return compared((other,), (wanted,), ((descending, nulls),))


def in_order(rows: list[Row], directions: Sequence[tuple[bool, bool | None]]) -> list[Row]:
    def stand(one: Row, other: Row) -> int:
        return compared(one[2], other[2], directions)

    return sorted(rows, key=cmp_to_key(stand))


def total(values: list[Any]) -> Any:
    if any(value != value for value in values):
        return NAN
    return math.fsum(values) if any(isinstance(v, float) for v in values) else sum(values)


# Random windows and histories.


def frames(random: Random, keys: str, width: int) -> Frame:
    kinds: list[Any] = ["rows", "groups", "range"]
    kind = random.choice(kinds if width else kinds[:1])
    edges = [CURRENT] if kind == "range" and (keys == "texts" or width > 1) else [CURRENT, *OFFSETS]
    start, end = random.choice([UNBOUNDED, *edges]), random.choice([UNBOUNDED, *edges])
    if kind == "rows" or edges != [CURRENT]:
        start = random.choice([start, ("following", random.randrange(3))])
        end = random.choice([end, ("following", random.randrange(3))])
    exclude: Any = random.choice(["", "", "", "", "current", "group", "ties"])
    return Frame(kind, start, end, exclude if width else "")


def functions(random: Random, keys: str, width: int) -> Iterator[Asked]:
    for _ in range(random.randrange(1, 5)):
        frame, argument = frames(random, keys, width), random.randrange(3)
        nulls, default = random.random() < 0.3, 1 if argument == 1 else 2  # of the same class
        yield random.choice(
            [
                Asked(random.choice(PLAIN), None, WHOLE),
                Asked("ntile", None, WHOLE, (random.randrange(1, 5),)),
                Asked(
                    *("shifted", argument, WHOLE),
                    (random.randrange(-3, 4), random.choice([None, default])),
                    nulls,
                ),
                Asked("nth", argument, frame, (random.choice([1, 2, 3, -1, -2]),), nulls),
                Asked("count", random.choice([None, argument, 3]), frame, ("count",)),
                *(Asked(name, argument, frame, (name,)) for name in ("sum", "avg", "min", "max")),
                Asked(least_two, argument, frame),
            ]
        )


def least_two(values: Sequence[Any]) -> Any:
    return tuple(sorted(values, key=rank_of)[:2])


def windows(random: Random) -> tuple[Window, Callable[[], Row]]:
    keys, width = random.choice(list(KEYS)), random.choice([0, 1, 1, 1, 2])
    directions = tuple((random.random() < 0.5, random.random() < 0.5) for _ in range(width))
    asked = tuple(functions(random, keys, width))
    is_wide = random.random() < 0.5

    def row() -> Row:
        number = random.randrange(6)
        of = tuple(random.choice(KEYS[keys]) for _ in range(width))
        values = (random.choice(VALUES), random.choice(FLOATS), number, random.choice("ab"))
        bindings = (number, (of, values)) if is_wide else ((number, of, values),)
        return (bindings, (), of, values)

    return Window(directions, asked, (None,) * (1 + is_wide + len(asked))), row


def changes(random: Random, there: Counter[Row], row: Callable[[], Row]) -> dict[Row, int]:
    found: Counter[Row] = Counter()
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 12])):
        if there and random.random() < 0.45:
            found[random.choice(list(there))] -= 1
        else:
            found[row()] += random.choice([1, 1, 1, 2])
    for each, weight in list(found.items()):
        found[each] = max(weight, -there[each])
    return {each: weight for each, weight in found.items() if weight}


def check(
    window: Window, shown: dict[Row, int], there: Counter[Row], kept: WindowPartition
) -> None:
    found = Slow(window, list(there.elements())).shown
    if window.limit is not None:
        number, most = window.limit
        item = number - len(window.functions)
        found = [row for row in found if row[item] <= most]
    expected = Counter(map(with_classes, found))
    assert Counter(with_classes(row) for row, _ in kept.contents()) == expected
    assert {row: weight for row, weight in shown.items() if weight} == expected


def with_classes(row: Row) -> Row:
    """Return the values with their classes: 1, 1.0 and True are equal, but not as answers."""
    return tuple((value.__class__, value) for value in row)


def play(random: Random, window: Window, row: Callable[[], Row], commits: int) -> None:
    kept, there, shown = window.kept()(), Counter[Row](), Counter[Row]()
    for _ in range(commits):
        delta = changes(random, there, row)
        told = kept.step(list(delta.items()))
        if random.random() < 0.3:
            kept.undo()
            check(window, shown, there, kept)
            continue
        kept.commit()
        for each, weight in told:
            shown[with_classes(each)] += weight
        for each, weight in delta.items():
            there[each] += weight
        there = +there
        check(window, shown, there, kept)
    kept.step([(each, -weight) for each, weight in there.items()])
    assert kept.is_empty


@pytest.mark.parametrize("seed", range(60))
def test_what_is_shown_is_what_the_window_says_of_all_rows(seed: int) -> None:
    random = Random(seed)
    play(random, *windows(random), commits=12)


@pytest.mark.parametrize("seed", range(12))
def test_rows_in_chunks_are_as_those_in_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "LOAD", 4)
    monkeypatch.setattr(entries, "FEW", 0)
    monkeypatch.setattr(partition, "FEW", 1)
    random = Random(seed)
    play(random, *windows(random), commits=20)


@pytest.mark.parametrize("seed", range(24))
def test_with_a_limit_the_first_rows_are_shown(seed: int) -> None:
    random = Random(seed)
    window, row = windows(random)
    name = random.choice(["row_number", "rank", "dense_rank"])
    others = tuple(asked for asked in window.functions if asked.function != "ntile")
    asked = (*others, Asked(name, None, WHOLE))
    count = len(row()[0])
    whole = Window(window.directions, asked, (None,) * (count + len(asked)))
    limited = whole.limited(count + len(asked) - 1, random.randrange(4))
    assert limited is not None
    play(random, limited, row, commits=12)


# Work.

RUNNING = Frame("range", UNBOUNDED, CURRENT)
NEAR = Frame("rows", ("preceding", 2), ("following", 1))
CHEAP = {
    "the first three rows": Asked("row_number", None, WHOLE),
    "lag": Asked("shifted", 0, WHOLE, (-1, None)),
    "the first value": Asked("nth", 0, WHOLE, (1,)),
    "the last value so far": Asked("nth", 0, RUNNING, (-1,)),
    "the least of all": Asked("min", 0, WHOLE, ("min",)),
    "the greatest so far": Asked("max", 0, RUNNING, ("max",)),
    "the greatest from here on": Asked("max", 0, Frame("rows", CURRENT, UNBOUNDED), ("max",)),
    "a sum of some rows": Asked("sum", 0, NEAR, ("sum",)),
    "the least within a distance": Asked(
        "min", 0, Frame("range", ("preceding", 1), CURRENT), ("min",)
    ),
    "parts": Asked("ntile", None, WHOLE, (4,)),
    "dense ranks": Asked("dense_rank", None, WHOLE),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CHEAP)
def test_work_does_not_grow_with_the_partition(name: str) -> None:
    few, many = (calls_of_a_change(CHEAP[name], size) for size in (300, 10_000))
    assert many < 2 * few + 200, f"{few} and {many} calls"


def calls_of_a_change(asked: Asked, size: int) -> int:
    """An amount in the middle changes, and back again."""
    window = Window(((False, False),), (asked,), (None, None))
    limited = window.limited(1, 3) if asked.function == "row_number" else window
    assert limited is not None
    kept = limited.kept()()
    kept.step([(row_of(n, n), 1) for n in range(size)])
    kept.commit()
    changed = [(row_of(size // 2, size // 2), -1), (row_of(size // 2, 0), 1)]
    calls = 0
    for delta in (changed, [(row, -weight) for row, weight in changed]) * 2:
        calls = calls_of(lambda delta=delta: kept.step(delta))  # type: ignore[misc]
        kept.commit()
    return calls


def test_a_batch_in_any_order_moves_few_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = 0

    class CountedSpans(Spans):
        __slots__ = ()

        def insert(self, place: int, size: int) -> None:
            nonlocal moved
            before = self.all(size)
            super().insert(place, size)
            moved += len({*before} - {*self.all(size)})

    monkeypatch.setattr(partition, "Spans", CountedSpans)
    kept = Window(((False, False),), (CHEAP["lag"],), (None, None)).kept()()
    kept.step([(row_of(2 * n, n), 1) for n in range(2_000)])
    kept.commit()
    kept.step([(row_of(2 * n + 1, n), 1) for n in range(0, 2_000, 10)])
    assert moved <= 200


def test_rows_are_held_once_and_loaded_without_a_hash() -> None:
    class Unhashed(NamedTuple):
        number: int

        def __hash__(self) -> int:
            raise AssertionError("hashed")

    heads = [Unhashed(n) for n in range(1_000)]
    window = Window(((True, False),), (CHEAP["lag"],), (None, None))
    groups = WindowGroups(lambda row: row[1], window.kept())
    groups.step(UniformDelta([((head,), (0,), (head.number,), (7,)) for head in heads], 1))
    groups.commit()
    rows = [row for (_, row), _ in groups.contents()]
    assert [row[0] for row in rows] == heads[::-1]
    assert rows[0][0] is heads[-1]
    held, size = groups.footprint()
    assert held == 1_000
    assert size < 60 * held


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_an_interrupt_at_any_moment_can_be_taken_back(seed: int) -> None:
    random = Random(seed)
    window, row = windows(random)
    kept, there = window.kept()(), Counter[Row](row() for _ in range(8))
    kept.step(list(there.items()))
    kept.commit()
    shown = Counter(with_classes(row) for row, _ in kept.contents())
    delta = list(changes(random, there, row).items())
    for moment in range(0, 2_000, 7):
        with Moments(moment), suppress(KeyboardInterrupt):
            kept.step(delta)
        kept.undo()
        check(window, dict(shown), there, kept)


def row_of(number: int, value: int) -> Row:
    return ((number,), (), (number,), (value % 7,))


def test_a_partition_of_which_something_raises_is_left_out_until_it_does_not() -> None:
    db = Database()
    db.execute("create table t (id integer primary key, g text, n integer)")
    view = db.sql("select id, sum(n) over (partition by g order by n) as s from t").materialize()
    table = next(iter(db.tables()))
    row = table.plan.row_type
    table.add_all([row(1, "a", 1), row(2, "a", 2), row(3, "b", 5)])
    table.add(row(4, "a", "x"))
    assert sorted(view) == [(3, 5)]
    assert len(view.errors) > 0
    table.add(row(5, "a", 7))
    assert sorted(view) == [(3, 5)]
    table.remove(row(4, "a", "x"))
    assert sorted(view) == [(1, 1), (2, 3), (3, 5), (5, 10)]
    assert len(view.errors) == 0
    view.verify()
