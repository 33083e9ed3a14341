"""Rows of a keyed table on disk, and where each is: a keyed store like any other."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reactive.engine.collections.zset import NAN
from reactive.engine.storage.row_check import KeyedStore
from reactive.engine.storage.store import Absent, Duplicate
from tests import moments
from tests.budget import examples

fingerprints = pytest.importorskip("spark_backend.parts.spilled", reason="numpy is not installed")
spilled = pytest.importorskip(
    "spark_backend.parts.spilled_keyed", reason="pyarrow is not installed"
)
row_files = pytest.importorskip("spark_backend.parts.spilled_keyed")
FILES = str(Path(spilled.__file__).parent)


@dataclass(frozen=True, slots=True)
class Typed:
    key: int
    value: float | None


class Odd:
    """Equal to all of its kind."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd)

    def __hash__(self) -> int:
        return 7


def key_of(row: Any) -> Any:
    return row.key if isinstance(row, Typed) else row[0]


TYPED = [Typed(key, value) for key in (0, 1, -5) for value in (1.0, None, NAN)]
ANY = [
    (key, value) for key in (1, True, 1.0, "a", None, NAN, (1, "a"), Odd()) for value in (1, "b")
]
STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "get", "move", "revert"]), st.integers(0, 15)),
    max_size=40,
)


@examples(80, share=1)
@given(
    kind=st.sampled_from([(Typed, TYPED), (tuple, ANY)]),
    first=st.lists(st.integers(0, 15), max_size=8),
    steps=STEPS,
    written=st.integers(1, 6),
)
def test_it_holds_what_a_keyed_store_in_memory_holds(
    kind: tuple[type, list[Any]],
    first: list[int],
    steps: list[tuple[str, int]],
    written: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    row_type, rows = kind
    own, store = begun(
        tmp_path_factory.mktemp("rows"), row_type, [rows[n % len(rows)] for n in first]
    )
    with patch.object(spilled, "WRITTEN", written), patch.object(fingerprints, "FEW", 2):
        for what, number in steps:
            row = rows[number % len(rows)]
            assert told(own, what, row) == told(store, what, row)
            assert len(store) == len(own)
        assert Counter(dict(store.pairs())) == Counter(dict(own.pairs()))
        store.expect(key_of(row) for row in rows)
        for row in rows:
            assert store.get(key_of(row)) == own.get(key_of(row))
            assert store.count(row) == own.count(row)
            assert (key_of(row) in store.by_key) == (key_of(row) in own.by_key)


def begun(folder: Path, row_type: Any, rows: Iterable[Any]) -> tuple[KeyedStore, Any]:
    """Return equal rows in a store in memory, and in a store that moves them to disk."""
    stores = KeyedStore(key_of), KeyedStore(key_of)
    for store in stores:
        for row in rows:
            with suppress(Duplicate):
                store.add(row, 1)
    return stores[0], spilled.SpilledKeyedStore(str(folder), row_type, stores[1])


def told(store: Any, what: str, row: Any) -> Any:
    """Return the result or error of a statement."""
    match what:
        case "add" | "remove":
            try:
                return getattr(store, what)(row, 1)
            except (Absent, Duplicate) as error:
                return type(error), error.args
        case "get":
            return store.get(key_of(row))
        case "revert" if store.get(key_of(row)) is None:
            return store.revert([(row, -1)])
        case "move" if hasattr(store, "move"):
            store.move(2)
    return None


def test_a_statement_of_many_rows_is_all_or_nothing(tmp_path: Path) -> None:
    _, store = begun(tmp_path, Typed, TYPED[:1])
    store.move(9)
    with pytest.raises(Duplicate):
        store.add_rows([TYPED[3], TYPED[6], TYPED[1]])
    with pytest.raises(Absent):
        store.remove_rows([TYPED[0], TYPED[3]])
    assert list(store.pairs()) == [(TYPED[0], 1)]


def test_what_is_replaced_again_and_again_takes_no_more_files(tmp_path: Path) -> None:
    with patch.object(spilled, "WRITTEN", 10):
        _, store = begun(tmp_path, Typed, [Typed(n, 0.0) for n in range(20)])
        while store.move(5):
            pass
        for turn in range(1, 30):
            for n in range(20):
                store.remove(Typed(n, turn - 1.0), 1)
                store.add(Typed(n, float(turn)), 1)
        assert dict(store.pairs()) == {Typed(n, 29.0): 1 for n in range(20)}
        assert sum(store._files.written.values()) <= 4 * 20 + 2 * 10
        assert len(list(tmp_path.glob("*.parquet"))) == len(store._files.written)


def test_the_rows_of_many_keys_are_fetched_together_each_row_group_once(tmp_path: Path) -> None:
    with patch.object(row_files, "ROW_GROUP", 10), patch.object(spilled, "WRITTEN", 50):
        _, store = begun(tmp_path, Typed, [Typed(n, 0.0) for n in range(100)])
        while store.move(50):
            pass
        store._write()
        read = row_files.pq.ParquetFile.read_row_group
        with patch.object(row_files.pq.ParquetFile, "read_row_group", autospec=True) as reads:
            reads.side_effect = read
            store.expect(range(100))
            assert [store.get(n) for n in range(100)] == [Typed(n, 0.0) for n in range(100)]
            assert reads.call_count == 10
            assert 5 in store.by_key and 500 not in store.by_key
            assert reads.call_count == 10  # whether a key is taken is known here


def test_what_cannot_be_written_changes_nothing_and_is_written_later(tmp_path: Path) -> None:
    with patch.object(spilled, "WRITTEN", 3):
        _, store = begun(tmp_path, Typed, TYPED[::3])
        store.move(9)
        with patch.object(store._files, "write", side_effect=OSError("no space")):
            with pytest.raises(OSError, match="no space"):
                store.add(Typed(50, 1.0), 1)
            store.remove(TYPED[0], 1)
            store.revert([(TYPED[0], -1)])
            assert len(store) == 3 and store.get(50) is None
        store.add(Typed(50, 1.0), 1)
        assert dict(store.pairs()) == dict.fromkeys([*TYPED[::3], Typed(50, 1.0)], 1)


def test_columns_are_kept_where_the_type_is_known_and_nothing_else_is(tmp_path: Path) -> None:
    _, store = begun(tmp_path, Typed, TYPED[::3])
    store.move(9)
    store._write()
    (file,) = tmp_path.glob("*.parquet")
    found = row_files.pq.read_table(file).to_pylist()
    assert {r["row"]["key"] for r in found} == {0, 1, -5}
    store.add(Typed(9, "no float"), 1)  # type: ignore[arg-type]
    store.add(Typed(True, 1.0), 1) if not store.has(True) else None
    assert store.get(9) == Typed(9, "no float")  # type: ignore[arg-type]
    store._write()
    assert len(list(tmp_path.glob("*.parquet"))) <= 2


STATEMENTS: list[Any] = [
    lambda store: store.add(Typed(7, 1.0), 1),
    lambda store: store.remove(Typed(2, 0.0), 1),
    lambda store: store.add_rows([Typed(7, 1.0), Typed(8, 1.0), Typed(9, 1.0)]),
    lambda store: store.remove_rows([Typed(1, 0.0), Typed(2, 0.0)]),
    lambda store: store.revert([(Typed(1, 0.0), 1), (Typed(1, 5.0), -1)]),
]


@pytest.mark.quick
@pytest.mark.parametrize("statement", STATEMENTS)
def test_at_no_moment_does_ctrl_c_leave_it_half_changed(statement: Any, tmp_path: Path) -> None:
    moment, where = 0, "the first"
    with patch.object(spilled, "WRITTEN", 2), patch.object(moments, "HERE", FILES):
        first, done = opened(tmp_path / "done")
        statement(done)
        rows = dict(first.pairs()), dict(done.pairs())
        while where:
            _, store = opened(tmp_path / str(moment))
            with moments.Moments(moment, ctrl_c) as at, suppress(KeyboardInterrupt):
                statement(store)
            where = at.where or ""
            assert dict(store.pairs()) in rows, where
            assert len(store) == len(dict(store.pairs())), where
            moment += 7
    assert moment > 7


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def opened(folder: Path) -> tuple[KeyedStore, Any]:
    own, store = begun(folder, Typed, [Typed(n, 0.0) for n in range(4)])
    while store.move(1):
        pass
    return own, store
