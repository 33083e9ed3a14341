"""Single changes within chunks, after random histories, against the definition of windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from reactive.engine.operators.windows import entries, near
from reactive.engine.operators.windows.frames import CURRENT, UNBOUNDED, WHOLE, Edge, Frame
from reactive.engine.operators.windows.function import Asked
from reactive.engine.operators.windows.near import NearChanges
from reactive.engine.operators.windows.window import Window
from tests.budget import seeds
from tests.counted_calls import calls_of
from tests.engine.operators.windows.test_windows import (
    FLOATS,
    KEYS,
    VALUES,
    Row,
    check,
    least_two,
    with_classes,
)

BEFORE: list[Edge] = [CURRENT, ("preceding", 0), ("preceding", 1), ("preceding", 2)]
BEHIND: list[Edge] = [CURRENT, ("following", 0), ("following", 1), ("following", 2)]
FIRST = ("row_number", "rank", "dense_rank")


def functions(random: Random) -> Iterator[Asked]:
    """Functions of few rows beside a row."""
    for _ in range(random.choice([1, 1, 2, 3])):
        argument = random.randrange(3)
        kinds = [(BEFORE, BEFORE), (BEFORE, BEHIND), (BEHIND, BEHIND)]
        start, end = (random.choice(edges) for edges in random.choice(kinds))
        exclude: Any = random.choice(["", "", "", "current", "group", "ties"])
        frame = Frame("rows", start, end, exclude)
        default = 1 if argument == 1 else 2
        yield random.choice(
            [
                Asked(
                    *("shifted", argument, WHOLE),
                    (random.randrange(-3, 4), random.choice([None, default])),
                ),
                Asked("nth", argument, frame, (random.choice([1, 2, -1]),), random.random() < 0.3),
                Asked("count", random.choice([None, argument]), frame, ("count",)),
                *(Asked(name, argument, frame, (name,)) for name in ("sum", "avg", "min", "max")),
                Asked(least_two, argument, frame),
            ]
        )


def windows(random: Random) -> tuple[Window, Any]:
    """Return a window of such functions, half of them limited, and a function that draws a row."""
    keys, width = random.choice(list(KEYS)), random.choice([1, 1, 2])
    directions = tuple((random.random() < 0.5, random.random() < 0.5) for _ in range(width))
    asked = tuple(functions(random))
    is_wide, has_limit = random.random() < 0.5, random.random() < 0.5
    if has_limit:
        asked += (Asked(random.choice(FIRST), None, WHOLE),)

    def row() -> Row:
        number = random.randrange(40)
        of = tuple(random.choice(KEYS[keys]) for _ in range(width))
        values = (random.choice(VALUES), random.choice(FLOATS), number)
        bindings = (number, (of, values)) if is_wide else ((number, of, values),)
        return (bindings, (), of, values)

    items = 1 + is_wide + len(asked)
    window = Window(directions, asked, (None,) * items)
    if has_limit:
        limited = window.limited(items - 1, random.randrange(6))
        assert limited is not None
        window = limited
    return window, row


def single_changes(random: Random, there: Counter[Row], row: Any, most: int) -> dict[Row, int]:
    """Return one row deleted, inserted, or replaced by one with other keys or other values."""
    old, new = random.choice(list(there)), row()
    if random.random() < 0.5:
        number, (of, values) = random.randrange(40), (old[2], new[3])
        is_wide = len(old[0]) == 2
        new = (((number, (of, values)) if is_wide else ((number, of, values),)), (), of, values)
    size = there.total()
    if size > 2 and (size >= most or random.random() < 0.8):
        return {old: -1} if old == new or random.random() < 0.3 else {old: -1, new: 1}
    return {new: 1}


def play(random: Random, commits: int, most: int) -> tuple[int, int]:
    """Check a history; return how many changes were applied within chunks, and how many not.

    A row that is replaced by another is so by the generated function, or by a step.
    """
    window, row = windows(random)
    kept, there = window.kept()(), Counter(row() for _ in range(random.randrange(2, most)))
    shown: Counter[Row] = Counter()
    delta = dict(there)
    there.clear()
    found, apply = [0, 0], NearChanges.apply

    def counted(self: Any, *given: Any) -> int:
        sight = apply(self, *given)
        found[sight < 0] += 1
        return sight

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NearChanges, "apply", counted)
        for _ in range(commits):
            told = None
            if sorted(delta.values()) == [-1, 1] and random.random() < 0.7:
                gone, came = sorted(delta, key=lambda row: delta[row])
                told = _without_key(kept.update("key", gone, came))
                found[told is None] += 1
            if told is None:
                told = kept.step(list(delta.items()))
            if random.random() < 0.2:
                kept.undo()
                check(window, shown, there, kept)
            else:
                kept.commit()
                for each, weight in told:
                    shown[with_classes(each)] += weight
                for each, weight in delta.items():
                    there[each] += weight
                there = +there
                check(window, shown, there, kept)
            delta = single_changes(random, there, row, most) if there else {row(): 1, row(): 1}
    kept.step([(each, -weight) for each, weight in there.items()])
    assert kept.is_empty
    return found[0], found[1]


def _without_key(told: list[Any] | None) -> list[Any] | None:
    assert told is None or {key for (key, _), _ in told} <= {"key"}
    return told if told is None else [(row, weight) for (_, row), weight in told]


@pytest.mark.parametrize("seed", seeds(40))
def test_single_changes_leave_what_the_window_says_of_all_rows(seed: int) -> None:
    play(Random(seed), commits=40, most=24)


@pytest.mark.parametrize("seed", seeds(20))
@pytest.mark.parametrize("load", [2, 8, 16])
def test_single_changes_in_several_chunks(
    seed: int, load: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "LOAD", load)
    monkeypatch.setattr(near, "CLOSE", Random(seed).choice([0, 3, 16]))
    monkeypatch.setattr(entries, "PEERS", Random(seed).choice([1, 8]))
    play(Random(seed), commits=30, most=60)


def test_most_single_changes_are_applied_within_a_chunk() -> None:
    histories = [play(Random(seed), 40, 24) for seed in range(20)]
    done, others = (sum(found) for found in zip(*histories, strict=True))
    assert done > 2 * others, f"{done} within a chunk, {others} not"


TWO_BEFORE = Frame("rows", ("preceding", 2), CURRENT)
ONE_CHANGE = {
    "lag": (Asked("shifted", 0, WHOLE, (-1, None)), 75),
    "lead": (Asked("shifted", 0, WHOLE, (1, None)), 75),
    "a sum of three rows": (Asked("sum", 0, TWO_BEFORE, ("sum",)), 120),
    "the greatest of three rows": (Asked("max", 0, TWO_BEFORE, ("max",)), 100),
    "the first three rows": (Asked("row_number", None, WHOLE), 75),
}
"""Functions, and a bound of the calls of one change; a partition evaluates spans in 106 to 327."""


@pytest.mark.parametrize("name", ONE_CHANGE)
@pytest.mark.parametrize("size", [10, 100, 5_000])
def test_one_change_takes_few_calls(name: str, size: int) -> None:
    asked, most = ONE_CHANGE[name]
    window = Window(((False, False),) * 2, (asked,), (None, None))
    limited = window.limited(1, 3) if name == "the first three rows" else window
    assert limited is not None
    kept = limited.kept()()

    def row(number: int, value: int) -> Row:
        return (((number, value),), (), (2 * number, number), (value,))

    kept.step([(row(n, n), 1) for n in range(size)])
    kept.commit()
    place = size // 2
    other = (((place, 3),), (), (size // 4 * 2 + 1, place), (3,))
    for gone, came in ((row(place, place), row(place, 0)), (row(place, 0), other)):
        calls = calls_of(lambda: kept.step([(gone, -1), (came, 1)]))
        kept.commit()
        assert calls <= most, f"{calls} calls"


@pytest.mark.parametrize("is_update", [False, True])
def test_a_new_first_group_hides_the_rows_of_all_chunks(
    is_update: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "LOAD", 2)
    window = Window(((False, False),), (Asked("dense_rank", None, WHOLE),), (None, None))
    limited = window.limited(1, 1)
    assert limited is not None
    kept = limited.kept()()

    def row(number: int, key: int) -> Row:
        return ((number,), (), (key,), ())

    kept.step([(row(n, 5), 1) for n in range(6)])
    kept.commit()
    first, gone = row(9, 1), row(0, 5)
    told = _without_key(kept.update((), gone, first)) if is_update else None
    if told is None:
        told = kept.step([(gone, -1), (first, 1)] if is_update else [(first, 1)])
    assert Counter(dict(told)) == Counter({(9, 1): 1} | {(n, 1): -1 for n in range(6)})
    assert list(kept.contents()) == [((9, 1), 1)]


def test_a_change_that_raises_changes_nothing() -> None:
    window = Window(((False, False),), (Asked("sum", 0, TWO_BEFORE, ("sum",)),), (None, None))
    kept = window.kept()()
    rows = [((n,), (), (n,), (n,)) for n in range(9)]
    kept.step([(row, 1) for row in rows])
    kept.commit()
    before = list(kept.contents())
    for bad in [((4,), (), (4,), ("text",)), ((4,), (), ("text",), (4,))]:
        with pytest.raises(TypeError):
            kept.step([(rows[4], -1), (bad, 1)])
        kept.undo()
        assert list(kept.contents()) == before


def test_a_frame_without_an_end_is_not_near() -> None:
    running = Asked("sum", 0, Frame("rows", UNBOUNDED, CURRENT), ("sum",))
    window = Window(((False, False),), (running,), (None, None))
    kept: Any = window.kept()
    assert kept.args[1] is None
