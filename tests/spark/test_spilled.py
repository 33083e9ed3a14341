"""Rows of a table on disk, and a mark of each in the process: a bag like any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.zset import NAN
from reactive.engine.storage.store import Absent, BagStore
from tests import moments
from tests.budget import examples

fingerprints = pytest.importorskip("spark_backend.parts.spilled", reason="numpy is not installed")
spilled = pytest.importorskip("spark_backend.parts.spilled", reason="pyarrow is not installed")

FILES = str(Path(spilled.__file__).parent)


@dataclass(frozen=True)
class Row:
    a: Any


class Odd:
    """Equal to all of its kind."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd)

    def __hash__(self) -> int:
        return 7


def held(rows: Iterable[Any]) -> BagStore:
    bag = BagStore()
    for row in rows:
        bag.add(row, 1)
    return bag


def moved(folder: Path, rows: Iterable[Any]) -> Any:
    store = spilled.SpilledStore(str(folder), held(rows))
    while store.move(1):
        pass
    return store


ROWS = [1, True, 1.0, -0.0, 0, "a", None, NAN, (1, "a"), (True, "a"), Row(1), Row(1.0), 1 << 80]
CHANGES = st.lists(st.tuples(st.sampled_from(ROWS), st.integers(-2, 2)), max_size=30)


@examples(80, share=1)
@given(
    first=st.lists(st.sampled_from(ROWS), max_size=8), changes=CHANGES, written=st.integers(1, 9)
)
def test_it_holds_what_a_bag_in_memory_holds(
    first: list[Any], changes: list[Any], written: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("rows"))
    with patch.object(spilled, "WRITTEN", written), patch.object(fingerprints, "FEW", 2):
        bag, store = BagStore(), spilled.SpilledStore(folder, held(first))
        for row in first:
            bag.add(row, 1)
        for row, weight in changes:
            store.move(abs(weight))  # they come while it is used
            if weight > 0:
                bag.add(row, weight)
                store.add(row, weight)
            elif weight < 0:
                assert _removed(bag, row, -weight) == _removed(store, row, -weight)
            assert store.count(row) == bag.count(row) and len(store) == len(bag)
        assert Counter(dict(store.pairs())) == Counter(dict(bag.pairs()))


def _removed(store: Any, row: Any, count: int) -> bool:
    try:
        store.remove(row, count)
    except Absent:
        return False
    return True


def test_a_statement_that_is_refused_is_taken_back(tmp_path: Path) -> None:
    store = moved(tmp_path, ["a", "b"])
    with pytest.raises(Absent):
        store.remove_rows(["a", "a"])
    assert sorted(store.pairs()) == [("a", 1), ("b", 1)]
    store.revert([("c", -2), ("b", 1)])
    assert sorted(store.pairs()) == [("a", 1), ("c", 2)]


def test_rows_that_nothing_is_known_of_stay_in_the_process(tmp_path: Path) -> None:
    store = moved(tmp_path, [1])
    store.add(Odd(), 2)
    assert store.count(Odd()) == 2 and len(store) == 3
    store.remove(Odd(), 2)
    assert list(store.pairs()) == [(1, 1)]


def test_marks_take_little_and_what_cancels_is_gone() -> None:
    found = fingerprints.Fingerprints()
    for n in range(30_000):
        found.add(n.to_bytes(16), 1)
    assert len(found) == 30_000 and found.bytes() <= 20 * 30_000
    for n in range(30_000):
        found.add(n.to_bytes(16), -1)
    assert len(found) == 0 and found.bytes() == 0


@pytest.mark.quick
@pytest.mark.parametrize("seed", range(30))
def test_marks_count_whatever_comes_and_goes_also_where_halves_are_equal(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, wanted = Random(seed), Counter[bytes]()
    monkeypatch.setattr(fingerprints, "FEW", draw.choice([0, 3, 50]))
    marks = [bytes([draw.randrange(2)] * 8) + draw.randbytes(1) + bytes(7) for _ in range(30)]
    found = fingerprints.Fingerprints()
    for _ in range(draw.randrange(200)):
        some = [
            (draw.choice(marks), draw.choice([1, 2, -1])) for _ in range(draw.choice([1, 1, 5]))
        ]
        if len(some) > 1:
            found.add_all(some)
        else:
            found.add(*some[0])
        for mark, times in some:
            wanted[mark] += times
    assert all(found.count(mark) == wanted[mark] for mark in marks)
    assert len(found) == sum(1 for times in wanted.values() if times)


def test_a_row_that_cannot_be_pickled_can_be_taken_back(tmp_path: Path) -> None:
    class Local(tuple[int, ...]):
        __slots__ = ()

    store = moved(tmp_path, [(4, ())])
    change = store.add((4, Local()), 2)
    assert len(store) == 3 and store.count((4, ())) == 3
    store.revert([change])
    assert list(store.pairs()) == [((4, ()), 1)]
    store.remove((4, Local()), 1)
    assert list(store.pairs()) == []


def test_what_cannot_be_written_changes_nothing_and_is_written_later(tmp_path: Path) -> None:
    with patch.object(spilled, "WRITTEN", 3):
        store = moved(tmp_path, range(5))
        store.add("a", 1)
        with patch.object(store._files, "put", side_effect=OSError("no space")):
            for statement in (store.add, store.remove):
                with pytest.raises(OSError, match="no space"):
                    statement("a", 1)
            assert len(store) == 6 and store.count("a") == 1
            store.revert([("a", 1), (0, 1), ("b", -2)])
            assert len(store) == 6 and store.count("b") == 2
        store.add("c", 1)
        assert dict(store.pairs()) == {1: 1, 2: 1, 3: 1, 4: 1, "b": 2, "c": 1}


def test_taking_back_is_all_or_nothing(tmp_path: Path) -> None:
    store = moved(tmp_path, ["a", "b"])
    with pytest.raises(Absent):
        store.revert([("a", 1), ("b", 1), ("c", 1)])
    assert sorted(store.pairs()) == [("a", 1), ("b", 1)] and len(store) == 2


STATEMENTS: list[Any] = [
    lambda store: store.add("c", 2),
    lambda store: store.remove("a", 1),
    lambda store: store.add_rows(["c", "d", Odd(), "d", "e"]),
    lambda store: store.remove_rows(["a", "b", Odd(), "b"]),
    lambda store: store.revert([("a", 1), ("z", -3), (Odd(), 1)]),
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_at_no_moment_does_an_interrupt_leave_it_half_changed(
    statement: Any, tmp_path: Path
) -> None:
    moment, where, expected = 0, "the first", set[Any]()
    first = Counter[Any]({"a": 1, "b": 2, Odd(): 1})

    def begun(folder: str) -> Any:
        store = moved(tmp_path / folder, ["a", "b", "b"])
        store.add(Odd(), 1)
        return store

    with patch.object(spilled, "WRITTEN", 2), patch.object(moments, "HERE", FILES):
        done = begun("done")
        statement(done)
        while where:
            store = begun(str(moment))
            with moments.Moments(moment) as at, suppress(KeyboardInterrupt):
                statement(store)
            where = at.where or ""
            store.recount()
            rows = Counter(dict(store.pairs()))
            assert rows in (first, Counter(dict(done.pairs()))), where
            assert len(store) == rows.total(), where
            assert all(store.count(row) == rows[row] for row in [*rows, "a", "c", "z"]), where
            expected.add(len(store))
            moment += 1
    assert expected == {4, len(done)} and moment > 5
