"""Objects made for a view of many rows are moved to the oldest generation, and few others are."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reactive import Database
from reactive.engine.runtime.collector import MANY, MOST, make_old, pause_collector


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    had_frozen = gc.get_freeze_count()  # all tests freeze the objects that exist before them
    gc.unfreeze()
    gc.collect()
    yield
    gc.unfreeze()
    if had_frozen:
        gc.freeze()
    gc.enable()


def collections(run: Callable[[], object]) -> int:
    """Return the number of garbage collections during a call."""
    found: list[str] = []

    def note(phase: str, _: object) -> None:
        found.append(phase)

    gc.collect()
    gc.callbacks.append(note)
    try:
        run()
    finally:
        gc.callbacks.remove(note)
    return found.count("start")


def made(count: int, least: int = MANY) -> list[list[int]]:
    """Containers that were made in a pause of their own."""
    with pause_collector():
        found = [[number] for number in range(count)]
        make_old(least)
    return found


def is_old(found: list[list[int]]) -> bool:
    return any(each is found[5] for each in gc.get_objects(generation=2))


@pytest.mark.long
def test_what_is_made_in_a_pause_is_not_walked_when_it_ends() -> None:
    found: list[list[int]] = []
    assert collections(lambda: found.extend(made(2 * MANY))) == 0
    assert gc.isenabled() and not gc.get_freeze_count()
    assert is_old(found)


@pytest.mark.long
def test_a_short_pause_makes_nothing_old() -> None:
    assert not is_old(made(100))


@pytest.mark.long
def test_tables_of_a_file_are_not_walked_again_and_again(tmp_path: Path) -> None:
    def open_all() -> None:
        for number in range(200):
            db.table(int, name=f"t{number}")

    with Database(tmp_path / "x.db", durability="exit") as db:
        open_all()
    with Database(tmp_path / "x.db") as db:
        assert collections(open_all) <= 1


@pytest.mark.long
def test_small_pauses_in_a_row_end_so_until_their_sum_is_that_of_large_ones() -> None:
    found = [made(MANY // 2, least=1) for _ in range(2 * MOST - 2)]
    assert all(map(is_old, found))
    found = [made(MANY // 2, least=1) for _ in range(4)]
    assert not is_old(found[-1])


@pytest.mark.long
def test_what_a_program_has_frozen_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    found = made(2 * MANY)
    assert len(found) == 2 * MANY and gc.get_freeze_count() >= frozen * 0.9


@pytest.mark.long
def test_what_a_program_has_frozen_is_counted_once_until_a_full_collection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    count = gc.get_freeze_count

    def counted() -> int:
        asked.append(count())
        return asked[-1]

    monkeypatch.setattr(gc, "get_freeze_count", counted)
    gc.freeze()
    found = [made(2 * MANY) for _ in range(5)]
    assert len(asked) == 1 and not any(map(is_old, found))
    gc.collect()
    made(2 * MANY)
    assert len(asked) == 2


@pytest.mark.long
def test_few_pauses_in_a_row_end_so_until_a_full_collection() -> None:
    for _ in range(MOST):
        assert is_old(made(MANY + 1_000))
    assert not is_old(made(MANY + 1_000))
    gc.collect()
    assert is_old(made(MANY + 1_000))


@pytest.mark.long
def test_a_view_that_is_made_of_many_rows_is_not_walked_after_it() -> None:
    table = Database().table(tuple)
    table.add_all([(number, str(number)) for number in range(2 * MANY)])
    pairs = table.select(lambda row: (row[0], row))
    views: list[object] = []
    assert collections(lambda: views.append(pairs.materialize())) <= 1


@pytest.mark.long
def test_garbage_of_a_pause_is_found_by_the_next_full_collection() -> None:
    with pause_collector():
        for _ in range(2 * MANY):
            cycle: list[object] = []
            cycle.append(cycle)
        make_old()
    assert gc.collect() >= 2 * MANY - 1
